"""How long a job is expected to run: what the scheduler is told of it when it is submitted.

The estimate reaches the engine as `Pod.time_limit`, which backfill trusts. It ends no pod.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from typing import Final, Literal

from alnair.sim.jobs import Job

#: `exact`: the truth; `limit`: what the pods say themselves (activeDeadlineSeconds, or the time
#: that a trace says was requested); `learned`: from the user's finished jobs; `none`: nothing.
Durations = Literal["exact", "limit", "learned", "none"]

#: The quantile of past durations that is expected. High, since backfill suffers more from jobs that
#: run longer than expected than from those that end early.
QUANTILE: Final = 0.9
#: Durations that are remembered of each user and kind, the latest: habits change.
_REMEMBERED: Final = 256
#: Finished jobs before they are trusted.
_ENOUGH: Final = 3


class Estimates:
    """Expects durations by one of the four ways.

    Args:
        mode: which.
        quantile: of past durations, for `learned`.
    """

    def __init__(self, mode: Durations, quantile: float = QUANTILE) -> None:
        self._mode = mode
        self._quantile = quantile
        self._past: dict[tuple[str, str], _Past] = {}

    def of(self, job: Job, stated: int) -> int:
        """Return the seconds that a pod is expected to run, 0 if nobody knows.

        Args:
            job: its job.
            stated: what the pod says itself, 0 if it says nothing.
        """
        if self._mode == "limit":
            return stated
        if self._mode == "exact":
            return max(1, math.ceil(job.duration)) if math.isfinite(job.duration) else 0
        if self._mode == "learned":
            for key in _keys(job):
                past = self._past.get(key)
                if past is not None and len(past.latest) >= _ENOUGH:
                    return max(1, math.ceil(past.quantile(self._quantile)))
        return 0

    def learn(self, job: Job) -> None:
        """Take in a job that has finished."""
        if self._mode == "learned":
            for key in _keys(job):
                self._past.setdefault(key, _Past()).add(job.duration)


def _keys(job: Job) -> tuple[tuple[str, str], ...]:
    """Return whose past tells: that of the user's jobs of its kind, or else of all the user's."""
    return ((job.user, job.kind), (job.user, "")) if job.kind else ((job.user, ""),)


class _Past:
    """The latest durations, also in order of size."""

    def __init__(self) -> None:
        self.latest: deque[float] = deque()
        self._sorted: list[float] = []

    def add(self, duration: float) -> None:
        self.latest.append(duration)
        insort(self._sorted, duration)
        if len(self.latest) > _REMEMBERED:
            del self._sorted[bisect_left(self._sorted, self.latest.popleft())]

    def quantile(self, part: float) -> float:
        """Return the smallest past duration that this part of all does not exceed."""
        rank = math.ceil(part * len(self._sorted))
        return self._sorted[max(rank, 1) - 1]
