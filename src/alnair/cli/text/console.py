"""Where tables are printed."""

import sys

from rich.console import Console


def console(*, json: bool = False, wrap: bool = True) -> Console:
    """Return a console on stdout, or on stderr if a program reads stdout.

    Args:
        json: A program reads stdout.
        wrap: Long lines are wrapped at the terminal's width.
    """
    return Console(file=sys.stderr if json else sys.stdout, highlight=False, soft_wrap=not wrap)
