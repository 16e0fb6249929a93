"""The result of `alnair simulate cluster`: a table for people, a line of JSON for programs."""

import sys
from typing import Any

import msgspec
import typer

from alnair.cli.text.placement_result import peak_rss_mb
from alnair.history.metrics import Metrics
from alnair.sim.simulation import Progress, Simulation

_DAY = 86400.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` writes.

    Attributes:
        digest: the same just if every decision is.
        simulated_s: seconds of virtual time, from the begin to the end.
        jobs, finished, unfinished: that were submitted, and what became of them.
        wall_s: seconds that the simulation took, in this process: after --resume, of the rest.
        times_real_time, jobs_per_second: by that.
        peak_rss_mb: of the whole process.
        metrics: see docs/reference/metrics-of-scheduling.md, without the series.
    """

    digest: str
    simulated_s: float
    jobs: int
    finished: int
    unfinished: int
    wall_s: float
    times_real_time: float
    jobs_per_second: float
    peak_rss_mb: float
    metrics: dict[str, Any]


def of(simulation: Simulation, metrics: Metrics, took: float, before: Progress) -> Result:
    """Put a simulation into figures.

    Args:
        simulation: that has ended.
        metrics: of its history.
        took: seconds that the process simulated.
        before: how far it was when the process began.
    """
    now = simulation.progress
    found = msgspec.to_builtins(metrics)
    del found["series"]
    return Result(
        digest=simulation.digest,
        simulated_s=simulation.time,
        jobs=now.submitted,
        finished=now.finished,
        unfinished=now.submitted - now.finished,
        wall_s=round(took, 3),
        times_real_time=round((now.time - before.time) / max(took, 1e-9), 1),
        jobs_per_second=round((now.finished - before.finished) / max(took, 1e-9), 1),
        peak_rss_mb=round(peak_rss_mb(), 1),
        metrics=found,
    )


def show(result: Result, *, json: bool) -> None:
    """Print the result: the table goes to stderr if a program reads stdout."""
    from rich.console import Console
    from rich.table import Table

    metrics = result.metrics
    ended = metrics["disruption"]["ended"]
    table = Table(show_header=False, box=None)
    for name, value in (
        ("jobs", f"{result.jobs:,}, {result.finished:,} finished"),
        ("simulated", f"{result.simulated_s / _DAY:,.2f} days in {result.wall_s:,.1f} s"),
        ("speed", f"{result.times_real_time:,.0f} times real time"),
        ("", f"{result.jobs_per_second:,.0f} jobs a second"),
        ("GPUs allocated", _percent(metrics["gpu"]["allocated_pct"])),
        ("GPUs used", _percent(metrics["gpu"]["used_pct"])),
        ("wait", _times(metrics["wait"]["all"], "not started")),
        ("completion", _times(metrics["completion"]["all"], "not finished")),
        ("stays cut short", ", ".join(f"{n} {how}" for how, n in ended.items() if n) or "none"),
        ("digest", result.digest or "none: nothing was decided"),
    ):
        table.add_row(name, value)
    Console(file=sys.stderr if json else sys.stdout, highlight=False, soft_wrap=True).print(table)
    if json:
        typer.echo(msgspec.json.encode(result).decode())


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} %"


def _times(found: dict[str, Any], lacking: str) -> str:
    """Return a distribution, and of how many jobs the time is not known yet: they count in none."""
    over, text = found["over"], "none"
    if over["count"]:
        text = ", ".join(f"{name} {over[name]:,.0f} s" for name in ("mean", "p50", "p90", "p99"))
    return f"{text}; {found['open']:,} {lacking}" if found["open"] else text
