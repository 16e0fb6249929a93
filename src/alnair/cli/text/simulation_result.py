"""The result of a simulation of a cluster for people to read."""

from typing import Any

from rich.console import Console
from rich.table import Table

from alnair.sim.result import Result

_DAY = 86400.0


def show(result: Result, console: Console) -> None:
    """Print the result as a table."""
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
    console.print(table, soft_wrap=True)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} %"


def _times(found: dict[str, Any], lacking: str) -> str:
    """Return a distribution, and of how many jobs the time is not known yet: they count in none."""
    over, text = found["over"], "none"
    if over["count"]:
        text = ", ".join(f"{name} {over[name]:,.0f} s" for name in ("mean", "p50", "p90", "p99"))
    return f"{text}; {found['open']:,} {lacking}" if found["open"] else text
