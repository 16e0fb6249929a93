"""The result of a placement benchmark for people to read."""

from rich.console import Console
from rich.table import Table

from alnair.model.plurals import counted
from alnair.sim.placement.result import Result


def show(result: Result, console: Console) -> None:
    """Print the result as a table."""
    table = Table(title=f"{result.policy} on {result.trace}", title_justify="left")
    table.add_column("")
    table.add_column("100 % arrived", justify="right")
    table.add_column("130 % arrived", justify="right")
    table.add_row(
        "GPU that nobody got, % of capacity",
        _text(result.unallocated_pct_at_100),
        _text(result.unallocated_pct_at_130),
    )
    table.add_row(
        "fragmentation F, % of capacity",
        _text(result.frag_pct_at_100),
        _text(result.frag_pct_at_130),
    )
    console.print(table)
    console.print(
        f"{counted(result.pods, 'pod')}, {result.failed_pods} of them found no node; "
        f"{result.pods_per_second:.0f} pods a second (median {result.p50_us:.0f} us, "
        f"p99 {result.p99_us:.0f} us), {result.peak_rss_mb:.0f} MB"
    )


def _text(percent: float | None) -> str:
    return "never" if percent is None else f"{percent:.2f}"
