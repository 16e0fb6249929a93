"""Where tables are printed."""

import sys

from rich.console import Console

#: Columns of a table that goes into a file or a pipe: nothing is cut there.
_WIDE = 1000


def console(*, json: bool = False, wrap: bool = True, wide: bool = False) -> Console:
    """Return a console on stdout, or on stderr if a program reads stdout.

    Args:
        json: A program reads stdout.
        wrap: Long lines are wrapped at the terminal's width.
        wide: Where there is no terminal, lines are as long as they like.
    """
    file = sys.stderr if json else sys.stdout
    width = _WIDE if wide and not file.isatty() else None
    return Console(file=file, highlight=False, soft_wrap=not wrap, width=width)
