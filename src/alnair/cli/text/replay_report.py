"""The outcome of a replay for people to read."""

from rich.console import Console
from rich.table import Table

from alnair.live.replay.report import ReplayReport


def show(found: ReplayReport, console: Console) -> None:
    """Print the report as a table."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, text in (
        ("pods", f"{found.pods}"),
        ("placed", f"{found.placed}"),
        ("pending", f"{found.pending}"),
        *(("", f"{count} {reason}") for reason, count in found.reasons.items()),
        ("GPU allocated", _with_unit("%", found.gpu_allocated_pct)),
        ("GPU fragmented", _with_unit("%", found.frag_pct)),
        ("decision p50, p99", _with_unit("µs", found.decision_p50_us, found.decision_p99_us)),
        ("created to bound p50, p99", _with_unit("ms", found.e2e_p50_ms, found.e2e_p99_ms)),
        ("pods per second", _with_unit("", found.pods_per_second)),
    ):
        table.add_row(name, text)
    console.print(table, markup=False)


def _with_unit(unit: str, *values: float | None) -> str:
    if any(value is None for value in values):
        return "not measured"
    return ", ".join(f"{value:,g} {unit}".strip() for value in values)
