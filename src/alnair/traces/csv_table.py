"""A CSV table that may be wrong in many places, all of which are told at once.

Cells are read by `Row` methods, which note a problem and return a stand-in instead of raising, so
that one pass over a file finds everything that is wrong with it.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from alnair.model.plurals import counted

#: How many problems of a file are shown; more are counted.
SHOWN: Final = 20
#: Above this a number is a mistake of unit, and its sum could leave what Kubernetes can count.
_MOST: Final = 10**9

# Only ASCII digits: int() would also take underscores, spaces and the digits of other scripts.
_WHOLE = re.compile(r"-?[0-9]+")
#: More digits are out of any range, and take Python long.
_DIGITS: Final = 18
_REAL = re.compile(r"[-+]?[0-9.]{1,40}(?:[eE][-+]?[0-9]{1,3})?")
_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class Problem(msgspec.Struct, frozen=True):
    """Something wrong: in the column, or in the whole line (`column` empty) or file (`line` 0)."""

    source: str
    line: int
    column: str
    text: str

    def __str__(self) -> str:
        where = f", line {self.line}" if self.line else ""
        where += f", column {self.column!r}" if self.column else ""
        return f"{self.source}{where}: {self.text}"


class TableError(ValueError):
    """Files with problems; the message lists the first ones and says how many there are.

    Attributes:
        problems: All of them, in order of file and line.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(p) for p in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"… and {len(self.problems) - SHOWN} more, {len(self.problems)} in all")
        super().__init__("\n".join(lines))


class Row:
    """One line, cell by cell; what is wrong goes to `problems`."""

    def __init__(
        self,
        source: str,
        line: int,
        cells: dict[str, str],
        problems: list[Problem],
        written: Mapping[str, str] = {},
    ) -> None:
        self._source = source
        self._cells = cells
        self._problems = problems
        self._written = written
        self.line = line

    def wrong(self, column: str, text: str) -> None:
        """Note a problem of a cell."""
        column = self._written.get(column, column)
        self._problems.append(Problem(self._source, self.line, column, text))

    def text(self, column: str) -> str:
        """Return a cell; empty if the file has no such column."""
        return self._cells.get(column, "")

    def name(self, column: str, seen: dict[str, int]) -> str:
        """Return a cell that names an object, once in the file; `seen` maps name → line."""
        found = self.text(column)
        if not _OBJECT_NAME.fullmatch(found):
            self.wrong(
                column,
                f"{found!r} cannot name an object: use lower-case letters, digits, dashes and dots",
            )
        elif found in seen:
            self.wrong(column, f"{found!r} is on line {seen[found]} already: names must differ")
        seen.setdefault(found, self.line)
        return found

    def number(self, column: str, *, least: int = 0, most: int = _MOST) -> int:
        """Return a cell as a whole number; `least` if it is none or out of range."""
        found = self.text(column)
        if not _WHOLE.fullmatch(found):
            self.wrong(column, f"{found!r} is not a whole number: write digits only")
            return least
        number = int(found) if len(found) <= _DIGITS else None
        if found.startswith("-") and number != 0:
            self.wrong(column, f"{found} is negative: write {least} or more")
        elif number is None or not least <= number <= most:
            self.wrong(column, f"{found} is not between {least} and {most}")
        else:
            return number
        return least

    def real(self, column: str, *, least: float = 0.0, most: float = _MOST) -> float:
        """Return a cell as a number, perhaps with a fraction; `least` if it is none or too large.

        Not a number and infinity are none.
        """
        found = self.text(column)
        try:
            number = float(found) if _REAL.fullmatch(found) else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.wrong(column, f"{found!r} is not a number: write digits, as 3600 or 0.5")
        elif number < 0 <= least:
            self.wrong(column, f"{found} is negative: write {least:g} or more")
        elif not least <= number <= most:
            self.wrong(column, f"{found} is not between {least:g} and {most:g}")
        else:
            return number
        return least


def rows(
    lines: Iterable[str],
    source: str,
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
    aliases: Mapping[str, Sequence[str]] = {},
    others: bool = False,
    problems: list[Problem],
) -> Iterator[Row]:
    """Yield the rows of a CSV text with a header; columns may come in any order.

    Args:
        lines: The text, line by line.
        source: Name of the file, for the problems.
        required: Columns that must be there.
        optional: Columns that may be there.
        aliases: Column → its other names, in lower case; problems name a column as it is written.
        others: Further columns may be there, and are not read.
        problems: Filled with what is wrong; a wrong header yields no rows.
    """
    reader = csv.reader(lines, strict=True)
    names = {alias: column for column, known in aliases.items() for alias in (column, *known)}

    def wrong(text: str) -> None:
        problems.append(Problem(source, reader.line_num, "", text))

    try:
        texts = [cell.strip() for cell in next(reader, [])]
        header = [names.get(text.lower(), text) for text in texts] if names else texts
        written = dict(zip(header, texts, strict=True))
        wrongs = [
            Problem(source, reader.line_num, written.get(column, column), text)
            for column, text in _check_header(header, required, optional, aliases, others=others)
        ]
        problems.extend(wrongs)
        if wrongs:
            return
        some = False
        for cells in reader:
            if not cells:
                continue
            some = True
            if len(cells) != len(header):
                wrong(f"{counted(len(cells), 'value')} for {counted(len(header), 'column')}")
                continue
            values = dict(zip(header, map(str.strip, cells), strict=True))
            yield Row(source, reader.line_num, values, problems, written)
        if not some:
            wrong("there is a header, but nothing below it")
    except csv.Error as error:
        wrong(f"this is not CSV: {error}")


def _check_header(
    header: list[str],
    required: Sequence[str],
    optional: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
    *,
    others: bool,
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the header as (column, text)."""
    if not header:
        yield "", f"the file is empty: expected a header with {','.join(required)}"
        return
    known = (*required, *optional)
    for name in header:
        if name not in known and not others:
            yield name, f"unknown column; known are {', '.join(known)}"
    for name in required:
        if name not in header:
            also = f" (also called {', '.join(aliases[name])})" if name in aliases else ""
            yield name, f"the column is missing{also}; needed are {', '.join(required)}"
    for name in sorted({name for name in header if header.count(name) > 1}):
        if name in known or not others:
            yield name, "the column is there twice"
