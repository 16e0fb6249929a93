"""What the scheduler counts while it works: plain numbers, of which the process makes metrics.

Counting happens at every decision, so it costs one bisection and an addition; everything that can
be read off the present state is left to `census`, which runs only when somebody asks.

Buckets are kube-scheduler's, so that its dashboards work (`pkg/scheduler/metrics/metrics.go`).
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, Literal

#: Ways in which an attempt ends; `error` = the Binding failed.
Result = Literal["scheduled", "unschedulable", "error"]


def doubling(first: float, count: int) -> tuple[float, ...]:
    """Return bucket bounds that double from the first one on."""
    return tuple(first * 2.0**i for i in range(count))


ATTEMPT_SECONDS: Final = doubling(0.001, 15)
#: Ours take microseconds: kube-scheduler's bounds, and ten halvings of its first one.
ALGORITHM_SECONDS: Final = doubling(0.001 / 1024, 25)
SLI_SECONDS: Final = doubling(0.01, 20)
EXTENSION_SECONDS: Final = doubling(0.0001, 12)
ATTEMPTS: Final = doubling(1, 5)
VICTIMS: Final = doubling(1, 7)
#: Attempts are a label up to here.
_MANY_ATTEMPTS: Final = 15


class Histogram:
    """Counts of values by bucket; a value belongs to the first bound that is not below it.

    Attributes:
        counts: one per bound, and one for what is above the last.
        sum: of all values.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self.counts)


class SchedulerCounters:
    """Counters and histograms; they only grow.

    Attributes:
        attempts: seconds of an attempt by (result, scheduler name): the decision and, if it led to
            one, the Binding.
        algorithm: seconds of a decision.
        sli: seconds from entering the queue to being bound, by number of attempts.
        tries: attempts that a pod needed.
        extension_points: seconds by (extension point, status, scheduler name).
        incoming: pods that entered a queue by (queue, event).
        preemption_attempts, preemption_victims: tries to make room, and how many pods each took.
        evictions: pods evicted by reason.
    """

    def __init__(self) -> None:
        self.attempts: dict[tuple[Result, str], Histogram] = {}
        self.algorithm = Histogram(ALGORITHM_SECONDS)
        self.sli: dict[str, Histogram] = {}
        self.tries = Histogram(ATTEMPTS)
        self.extension_points: dict[tuple[str, str, str], Histogram] = {}
        self.incoming: dict[tuple[str, str], int] = {}
        self.preemption_attempts = 0
        self.evictions: dict[str, int] = {}
        self.preemption_victims = Histogram(VICTIMS)

    def attempt(self, result: Result, profile: str, seconds: float) -> None:
        """Count an attempt at a pod."""
        histogram = self.attempts.get((result, profile))
        if histogram is None:
            histogram = self.attempts[result, profile] = Histogram(ATTEMPT_SECONDS)
        histogram.observe(seconds)

    def scheduled(self, profile: str, seconds: float, waited: float, tries: int) -> None:
        """Count a pod that was bound.

        Args:
            profile: its scheduler name.
            seconds: of the attempt, with the Binding.
            waited: seconds since it entered the queue.
            tries: attempts that it needed, with this one.
        """
        self.attempt("scheduled", profile, seconds)
        self.tries.observe(tries)
        label = str(tries) if tries < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
        histogram = self.sli.get(label)
        if histogram is None:
            histogram = self.sli[label] = Histogram(SLI_SECONDS)
        histogram.observe(waited)

    def ran(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Count a run of an extension point."""
        key = (point, status, profile)
        histogram = self.extension_points.get(key)
        if histogram is None:
            histogram = self.extension_points[key] = Histogram(EXTENSION_SECONDS)
        histogram.observe(seconds)

    def queued(self, queue: str, event: str, pods: int) -> None:
        """Count pods that entered a queue."""
        key = (queue, event)
        self.incoming[key] = self.incoming.get(key, 0) + pods

    def evicted(self, reason: str) -> None:
        """Count a pod that is evicted."""
        self.evictions[reason] = self.evictions.get(reason, 0) + 1

    def preempted(self, victims: int) -> None:
        """Count an attempt to make room; 0 victims = it found none."""
        self.preemption_attempts += 1
        if victims:
            self.preemption_victims.observe(victims)
