"""The result of `alnair simulate placement`: a table for people, a line of JSON for programs."""

import resource
import statistics
import sys
from typing import Any

import msgspec
import typer

from alnair.sim.placement.benchmark import Level, Run


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` writes.

    Attributes:
        trace: the pod list.
        policy: profile or published policy.
        orders: the files of the orders; empty where `seed` made them.
        unallocated_pct_at_100, unallocated_pct_at_130: GPU that is allocated to nobody, percent of
            capacity, when pods asking for that percentage have arrived; null if so much never does.
        frag_pct_at_100, frag_pct_at_130: F of the FGD paper, percent of capacity.
        pods, failed_pods: that arrived, and that found no node.
        pods_per_second: by the time that the engine took.
        p50_us, p99_us: that the engine took for a pod, microseconds.
        peak_rss_mb: of the whole process.
        digest: the same just if every decision is.
    """

    trace: str
    policy: str
    seed: int | None
    orders: tuple[str, ...]
    unallocated_pct_at_100: float | None
    unallocated_pct_at_130: float | None
    frag_pct_at_100: float | None
    frag_pct_at_130: float | None
    pods: int
    failed_pods: int
    pods_per_second: float
    p50_us: float
    p99_us: float
    peak_rss_mb: float
    digest: str


def of(
    run: Run, *, trace: str, policy: str, seed: int | None, orders: tuple[str, ...] = ()
) -> Result:
    """Put a run into figures; the memory is that of this process so far."""
    full, beyond = run.at(100), run.at(130)
    seconds = sorted(run.seconds)
    return Result(
        trace=trace,
        policy=policy,
        seed=seed,
        orders=orders,
        unallocated_pct_at_100=_unallocated(full),
        unallocated_pct_at_130=_unallocated(beyond),
        frag_pct_at_100=_fragmented(full),
        frag_pct_at_130=_fragmented(beyond),
        pods=len(run.decisions),
        failed_pods=run.failed,
        pods_per_second=round(len(seconds) / max(sum(seconds), 1e-9), 1),
        p50_us=round(1e6 * statistics.median(seconds), 1) if seconds else 0.0,
        p99_us=round(1e6 * seconds[int(0.99 * (len(seconds) - 1))], 1) if seconds else 0.0,
        peak_rss_mb=round(peak_rss_mb(), 1),
        digest=run.digest,
    )


def as_dict(result: Result) -> dict[str, Any]:
    """Return what is written as JSON."""
    found: dict[str, Any] = msgspec.to_builtins(result)
    return found


def peak_rss_mb() -> float:
    """Return the most memory that this process has had, in MB (10⁶ bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def show(result: Result, *, json: bool) -> None:
    """Print the result: the table goes to stderr if a program reads stdout."""
    from rich.console import Console
    from rich.table import Table

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
    console = Console(file=sys.stderr if json else sys.stdout, highlight=False)
    console.print(table)
    console.print(
        f"{result.pods} pods, {result.failed_pods} of them found no node; "
        f"{result.pods_per_second:.0f} pods a second (median {result.p50_us:.0f} us, "
        f"p99 {result.p99_us:.0f} us), {result.peak_rss_mb:.0f} MB"
    )
    if json:
        typer.echo(msgspec.json.encode(result).decode())


def _unallocated(level: Level | None) -> float | None:
    return None if level is None else round(level.unallocated_pct, 3)


def _fragmented(level: Level | None) -> float | None:
    return None if level is None else round(level.frag_pct, 3)


def _text(percent: float | None) -> str:
    return "never" if percent is None else f"{percent:.2f}"
