"""All files of a report, as bytes."""

import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Final

import msgspec

from alnair.history.history import History
from alnair.history.metrics import Metrics, compute
from alnair.history.report import tables
from alnair.history.report.plot import Plot

#: In `summary.json`: what makes a folder a report.
FORMAT: Final = "alnair-report"
_NO_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Scheduling report</title></head><body>
<p>There is no page, as jinja2 is not installed: <code>pip install 'alnair[report]'</code> and write
the report again. The CSV files beside this one and <code>summary.json</code> are complete.</p>
</body></html>
"""


def render(
    histories: Mapping[str, History], computed: Mapping[str, Metrics] | None = None
) -> dict[str, bytes]:
    """Return the files of a report by their names.

    Args:
        histories: of the runs by their names, at least one; the first is what the others are
            compared with.
        computed: their metrics, if they are known already.

    Raises:
        ValueError: a history contradicts itself.
    """
    runs = computed or {run: compute(history) for run, history in histories.items()}
    pictures = _plots(histories, runs)
    summary = {
        "format": FORMAT,
        "v": 1,
        "runs": {run: tables.brief(metrics) for run, metrics in runs.items()},
    }
    return {
        "index.html": _page(runs, pictures).encode(),
        "summary.json": msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n",
        "summary.csv": tables.summary(runs),
        "jobs.csv": tables.table(tables.JOBS, tables.jobs(histories)),
        "pods.csv": tables.table(tables.PODS, tables.pods(histories)),
        "users.csv": tables.table(tables.USERS, tables.users(runs)),
        "pairs.csv": tables.table(tables.PAIRS, tables.pairs(runs)),
        "series.csv": tables.series(runs),
        **{f"{plot.name}.{kind}": data for plot in pictures for kind, data in plot.files.items()},
    }


def _page(runs: Mapping[str, Metrics], pictures: Sequence[Plot]) -> str:
    """Return the page, or one that says how to have it if jinja2 is not there."""
    drawing = optional("alnair.history.report.page")
    if drawing is None:
        return _NO_PAGE
    found: str = drawing.page(runs, pictures)
    return found


def _plots(histories: Mapping[str, History], runs: Mapping[str, Metrics]) -> Sequence[Plot]:
    """Return the plots; none if matplotlib, which takes long to load, is not there."""
    drawing = optional("alnair.history.report.plots")
    if drawing is None:
        return ()
    found: Sequence[Plot] = drawing.plots(histories, runs)
    return found


def optional(module: str) -> ModuleType | None:
    """Return a module of ours, or None if a package that it needs is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("alnair"):
            raise
        return None
