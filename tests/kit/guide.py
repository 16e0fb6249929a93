"""What a page of the documentation says that a command prints."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Final

_PAGES: Final = Path(__file__).parents[2] / "docs" / "how-to"
_LINES: Final = r"((?:(?!```).*\n)*)"
_SHOWN: Final = re.compile(rf"^```sh\n{_LINES}```\n\n```text\n{_LINES}```$", re.MULTILINE)
#: Stands for any lines, or for the rest of one.
_MORE: Final = "…"


def shown(page: str, command: str) -> list[str]:
    """The lines that a page shows for the command which begins so.

    Raises:
        KeyError: The page has no such command, or shows nothing of it.
    """
    for block, text in _SHOWN.findall((_PAGES / page).read_text()):
        if block.startswith(command):
            return str(text).splitlines()
    raise KeyError(f"{page} shows nothing of {command}")


def differs(page: str, command: str, said: str) -> str:
    """The first line that a page shows and the command does not say there; empty: none."""
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    at = 0
    for before, line in pairwise(["", *shown(page, command)]):
        if line == _MORE:
            continue
        places = range(at, len(lines)) if before == _MORE else range(at, min(at + 1, len(lines)))
        start, is_begin, _ = line.partition(_MORE)
        found = (i for i in places if lines[i] == line or (is_begin and lines[i].startswith(start)))
        at = next(found, -1) + 1
        if not at:
            return line
    return ""
