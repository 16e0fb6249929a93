"""The result of a placement benchmark, in figures; its JSON is this struct."""

import statistics
from typing import Any

import msgspec

from alnair.sim.placement.benchmark import Level, Run


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

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
    run: Run,
    *,
    trace: str,
    policy: str,
    seed: int | None,
    peak_rss_mb: float,
    orders: tuple[str, ...] = (),
) -> Result:
    """Put a run into figures."""
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
        peak_rss_mb=round(peak_rss_mb, 1),
        digest=run.digest,
    )


def as_dict(result: Result) -> dict[str, Any]:
    """Return what is written as JSON."""
    found: dict[str, Any] = msgspec.to_builtins(result)
    return found


def _unallocated(level: Level | None) -> float | None:
    return None if level is None else round(level.unallocated_pct, 3)


def _fragmented(level: Level | None) -> float | None:
    return None if level is None else round(level.frag_pct, 3)
