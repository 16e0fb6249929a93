"""A user's jobs on a cluster of their own: T_isolated of finish-time fairness.

Source of the notion: Mahajan et al., *Themis: Fair and Efficient GPU Cluster Scheduling*, NSDI'20,
section 3.1. How the time in isolation is got is our own; it flatters the isolated cluster, which
has one pool of GPUs without nodes, so that a ratio above 1 is not an artefact of its shape.
"""

import heapq
from collections import deque
from collections.abc import Sequence

import msgspec


class Alone(msgspec.Struct, frozen=True):
    """A job as it would run alone: seconds from submission, GPUs, seconds."""

    submitted: float
    gpus: float
    duration: float


def completions(jobs: Sequence[Alone], gpus: float) -> list[float]:
    """Return the seconds from submission to completion of each job on so many GPUs.

    A job starts as soon as its GPUs are free, those submitted first go first, and one that fits may
    overtake one that does not. A job that asks for more than there are runs on all of them, as
    much longer.

    Args:
        jobs: In the order of submission; their GPUs are more than 0.
        gpus: More than 0.
    """
    found = [0.0] * len(jobs)
    # Few sizes occur: of each only the first in line needs a look.
    waiting: dict[float, deque[int]] = {}
    running: list[tuple[float, int, float]] = []
    free, coming = gpus, 0
    while coming < len(jobs) or running:
        now = min(
            jobs[coming].submitted if coming < len(jobs) else float("inf"),
            running[0][0] if running else float("inf"),
        )
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[2]
        if not running:
            free = gpus  # sums of parts miss the whole by rounding
        while coming < len(jobs) and jobs[coming].submitted <= now:
            waiting.setdefault(min(jobs[coming].gpus, gpus), deque()).append(coming)
            coming += 1
        while True:
            fitting = [line[0] for size, line in waiting.items() if size <= free + 1e-9]
            if not fitting:
                break
            first = min(fitting)
            job = jobs[first]
            size = min(job.gpus, gpus)
            waiting[size].popleft()
            if not waiting[size]:
                del waiting[size]
            end = now + job.duration * (job.gpus / size)
            found[first] = end - job.submitted
            heapq.heappush(running, (end, first, size))
            free -= size
    return found
