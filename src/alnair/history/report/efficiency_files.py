"""All files of a report on efficiency, as bytes."""

import csv
import html
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from alnair.history.database.efficiency import DayShare, Share
from alnair.history.report.files import FORMAT, optional
from alnair.history.report.plot import Plot

_HOURS: Final = ("jobs", "held", "measured", "used", "wasted")
_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>GPU hours</title>
<style>body {{ font-family: sans-serif; max-width: 60em; margin: 2em auto }}
td, th {{ padding: 0 1em 0 0; text-align: right }} td:first-child {{ text-align: left }}</style>
</head><body><h1>GPU hours by {by}</h1>
{plots}
<table><tr>{header}</tr>
{rows}
</table></body></html>
"""
_NO_PLOTS: Final = "<p>Without plots: <code>pip install 'alnair[report]'</code> draws them.</p>"


def render(
    by: str, shares: Sequence[Share], days: Sequence[DayShare], summary: dict[str, Any]
) -> dict[str, bytes]:
    """Return the files of a report by their names; without matplotlib there are no plots.

    Args:
        by: What the names are of.
        shares: Who wasted most comes first.
        days: Of the jobs that ended on each day.
        summary: The figures, as programs get them.
    """
    drawing = optional("alnair.history.report.efficiency_plots")
    pictures: Sequence[Plot] = drawing.plots(by, shares, days) if drawing is not None else ()
    text = msgspec.json.encode({"format": FORMAT, **summary})
    dated = [(datetime.fromtimestamp(one.day * 86400.0, UTC).date(), one) for one in days]
    return {
        "index.html": _page(by, shares, pictures).encode(),
        "summary.json": msgspec.json.format(text, indent=1) + b"\n",
        f"{by}s.csv": _table((by, *_HOURS), ([one.name, *_hours(one)] for one in shares)),
        "days.csv": _table(
            ("day", by, *_HOURS), ([day, one.name, *_hours(one)] for day, one in dated)
        ),
        **{f"{one.name}.{kind}": data for one in pictures for kind, data in one.files.items()},
    }


def _hours(one: Share) -> list[float]:
    hours = (one.held, one.measured, one.used, one.wasted)
    return [one.jobs, *(round(amount, 3) for amount in hours)]


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def _page(by: str, shares: Sequence[Share], pictures: Sequence[Plot]) -> str:
    def row(cells: Iterable[object], kind: str = "td") -> str:
        return "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in cells)

    rows = "\n".join(f"<tr>{row([one.name, *_hours(one)])}</tr>" for one in shares)
    drawn = "\n".join(f"<div>{one.inline}</div>" for one in pictures) or _NO_PLOTS
    return _PAGE.format(by=by, plots=drawn, header=row((by, *_HOURS), "th"), rows=rows)
