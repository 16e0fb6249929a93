"""Rows of the table: the required figure beside the measured one."""

from collections import Counter

import msgspec

OK, FAILED, SKIPPED, NOTED = "ok", "FAILED", "skipped", "noted"


class Row(msgspec.Struct, frozen=True):
    """One figure of one test.

    Attributes:
        test: number in gpu-sharing.md section 3.3.
        what: what is measured.
        required: the bound, in words.
        measured: the figure, in words; the reason where it was skipped.
        verdict: OK, FAILED, SKIPPED, or NOTED: measured where the bound does not apply (a figure of
            time on the fake GPU says nothing of a real one).
    """

    test: int
    what: str
    required: str
    measured: str
    verdict: str


def judged(test: int, what: str, required: str, measured: str, holds: bool) -> Row:
    """A row whose bound holds or does not."""
    return Row(test, what, required, measured, OK if holds else FAILED)


def timed(test: int, what: str, required: str, measured: str, holds: bool, *, is_fake: bool) -> Row:
    """A row about time or throughput, which the fake GPU on a shared machine cannot judge."""
    verdict = (OK if holds else NOTED) if is_fake else (OK if holds else FAILED)
    return Row(test, what, required, measured, verdict)


def skipped(test: int, what: str, why: str) -> Row:
    """A row of what could not be tried."""
    return Row(test, what, "", why, SKIPPED)


def counted(rows: list[Row]) -> dict[str, int]:
    """How many rows there are of each verdict."""
    found = Counter(row.verdict for row in rows)
    return {word.lower(): found[word] for word in (OK, FAILED, NOTED, SKIPPED)}


def table(rows: list[Row]) -> str:
    """All rows as aligned text."""
    heads = ("test", "what", "required", "measured", "verdict")
    lines = [heads, *((str(r.test), r.what, r.required, r.measured, r.verdict) for r in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
