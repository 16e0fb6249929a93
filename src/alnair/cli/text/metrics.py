"""Metrics as a table for people and as values for programs."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alnair.history.metrics import Metrics
from alnair.history.report import overview, tables
from alnair.model.plurals import counted


def show(runs: Mapping[str, Metrics], console: Console) -> None:
    """Print the overview of some runs side by side."""
    first, *others = runs
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for run in runs:
        table.add_column(escape(run), justify="right")
    for other in others:
        table.add_column(escape(f"{other} / {first}"), justify="right")
    for row in overview.rows(runs):
        if row.heading:
            table.add_row(f"[bold]{row.heading}[/bold]")
        table.add_row(f"  {row.label}", *row.values, *row.ratios)
    console.print(table)
    for run, metrics in runs.items():
        for reason, count in list(metrics.refusals.items())[:5]:
            console.print(f"{run}: {counted(count, 'pod')} without a node: {reason}", markup=False)


def figures(runs: Mapping[str, Metrics]) -> dict[str, Any]:
    """Return what `--json` writes: all figures but the series."""
    return {"runs": {run: tables.brief(metrics) for run, metrics in runs.items()}}
