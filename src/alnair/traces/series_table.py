"""A series of samples as a CSV table: seconds and values, one sample on each line."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from alnair.traces.csv_table import Problem, TableError, rows

TIME, VALUE = "time_s", "value"
#: What is not a number is a sample that was missed, if it is written so.
_MISSED: Final = ("", "nan", "NaN")
#: Larger than any count of bytes, and than any time.
_MOST: Final = 1e18


class Series(NamedTuple):
    """Samples in the order of their time.

    Attributes:
        times: Seconds.
        values: As many; NaN where the sample was missed.
    """

    times: list[float]
    values: list[float]


def read_series(lines: Iterable[str], source: str) -> Series:
    """Read a table with the columns time_s and value; others are not read.

    Args:
        lines: The text, with a header.
        source: Name of the file, for the problems.

    Raises:
        TableError: Something is wrong, each with line and column: a cell is no number, or a time is
            before the one above it.
    """
    problems: list[Problem] = []
    found = Series([], [])
    for row in rows(lines, source, required=(TIME, VALUE), others=True, problems=problems):
        before = len(problems)
        time = row.real(TIME, least=-_MOST, most=_MOST)
        missed = row.text(VALUE) in _MISSED
        value = float("nan") if missed else row.real(VALUE, least=-_MOST, most=_MOST)
        if len(problems) > before:
            continue
        if found.times and time < found.times[-1]:
            row.wrong(
                TIME, f"{time:.10g} is before {found.times[-1]:.10g} above it: sort the lines"
            )
            continue
        found.times.append(time)
        found.values.append(value)
    if problems:
        raise TableError(problems)
    return found
