"""All files of a report on a placement benchmark, as bytes."""

import csv
import html
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from alnair.history.report.files import FORMAT, optional
from alnair.history.report.plot import Plot
from alnair.sim.placement.benchmark import Level
from alnair.sim.placement.result import Result, as_dict

_COLUMNS: Final = ("arrived_pct", "unallocated_pct", "frag_pct", "failed")
_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font-family: sans-serif; max-width: 60em; margin: 2em auto }}
td, th {{ padding: 0 1em 0 0; text-align: right }} td:first-child {{ text-align: left }}</style>
</head><body><h1>{title}</h1>
<p>{pods} pods arrived, {failed} of them found no node.</p>
{plots}
<table><tr>{header}</tr>
{rows}
</table></body></html>
"""
_NO_PLOTS: Final = "<p>Without plots: <code>pip install 'alnair[report]'</code> draws them.</p>"
#: Rows of the page's table are so many percent apart; `levels.csv` has each.
_APART: Final = 10


def render(result: Result, levels: Sequence[Level]) -> dict[str, bytes]:
    """Return the files of a report by their names; without matplotlib there are no plots.

    Args:
        result: the figures, as programs get them.
        levels: by percent arrived, ascending.
    """
    drawing = optional("alnair.sim.placement.report_plots")
    pictures: Sequence[Plot] = drawing.plots(levels) if drawing is not None else ()
    text = msgspec.json.encode({"format": FORMAT, **as_dict(result)})
    return {
        "index.html": _page(result, levels, pictures).encode(),
        "summary.json": msgspec.json.format(text, indent=1) + b"\n",
        "levels.csv": _table(levels),
        **{f"{one.name}.{kind}": data for one in pictures for kind, data in one.files.items()},
    }


def _cells(level: Level) -> list[float]:
    unallocated, fragmented = round(level.unallocated_pct, 3), round(level.frag_pct, 3)
    return [level.arrived_pct, unallocated, fragmented, level.failed]


def _table(levels: Iterable[Level]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(map(_cells, levels))
    return text.getvalue().encode()


def _page(result: Result, levels: Sequence[Level], pictures: Sequence[Plot]) -> str:
    def row(cells: Iterable[Any], kind: str = "td") -> str:
        return "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in cells)

    shown = [one for one in levels if one.arrived_pct % _APART == 0]
    header = ("arrived, %", "GPU that nobody got, %", "F, %", "pods without a node")
    return _PAGE.format(
        title=html.escape(f"{result.policy} on {result.trace}"),
        pods=result.pods,
        failed=result.failed_pods,
        plots="\n".join(f"<div>{one.inline}</div>" for one in pictures) or _NO_PLOTS,
        header=row(header, "th"),
        rows="\n".join(f"<tr>{row(_cells(one))}</tr>" for one in shown),
    )
