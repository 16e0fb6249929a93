"""The result of a simulation of a cluster, in figures; its JSON is this struct."""

from typing import Any

import msgspec

from alnair.history.metrics import Metrics
from alnair.sim.simulation import Progress, Simulation


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

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


def of(
    simulation: Simulation,
    metrics: Metrics,
    *,
    took: float,
    before: Progress,
    peak_rss_mb: float,
) -> Result:
    """Put a simulation into figures.

    Args:
        simulation: that has ended.
        metrics: of its history.
        took: seconds that the process simulated.
        before: how far it was when the process began.
        peak_rss_mb: the most memory that the process has had, MB.
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
        peak_rss_mb=round(peak_rss_mb, 1),
        metrics=found,
    )
