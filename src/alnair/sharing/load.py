"""What was measured of a GPU's or a pod's use, over a window: its mean, and since when it is idle.

What was not measured is unknown, and never idle: a gap in the samples begins everything anew.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

#: Percent of a GPU's time below which it counts as idle.
IDLE_BELOW: Final = 1.0
#: Seconds for which it must be so before it is said; by then it is told from a pause.
IDLE_AFTER: Final = 60.0
#: Seconds over which the mean is taken.
WINDOW: Final = 30.0
#: Seconds between two samples from which on they are two courses.
GAP: Final = 5.0


class Course(msgspec.Struct, frozen=True):
    """The samples of one GPU, or of one container on it.

    Attributes:
        samples: (time in seconds, percent of the GPU's time), the oldest first.
        quiet_since: Since when all samples were below `IDLE_BELOW`; None if the last one is not.
    """

    samples: tuple[tuple[float, float], ...] = ()
    quiet_since: float | None = None

    @property
    def mean(self) -> float:
        """Percent of time, over the window; 0 without samples."""
        return sum(util for _, util in self.samples) / max(1, len(self.samples))

    @property
    def seconds(self) -> float:
        """How long the window is by now; at least that of one sample."""
        return max(1.0, self.samples[-1][0] - self.samples[0][0]) if self.samples else 0.0

    def is_fresh(self, now: float) -> bool:
        """Whether it is known what goes on now."""
        return bool(self.samples) and now - self.samples[-1][0] <= GAP

    def idle_for(self, now: float) -> float | None:
        """Return the seconds of idleness, or None while it is not idle."""
        if self.quiet_since is None or now - self.quiet_since < IDLE_AFTER:
            return None
        return now - self.quiet_since


def sampled(before: Course, util: float, now: float, window: float = WINDOW) -> Course:
    """Return the course with one more sample.

    Args:
        before: Until now.
        util: Percent of the GPU's time since the last sample; cut to 0 to 100.
        now: Seconds.
        window: Seconds that are kept.
    """
    if not before.is_fresh(now):
        before = Course()
    util = min(max(util, 0.0), 100.0)
    quiet = before.quiet_since if before.quiet_since is not None else now
    kept = tuple(sample for sample in before.samples if now - sample[0] < window)
    return Course((*kept, (now, util)), quiet if util < IDLE_BELOW else None)


class PodLoad(msgspec.Struct, frozen=True):
    """What a pod does with its GPUs.

    Attributes:
        gpu: Percent of their time, a mean over the GPUs.
        idle_for: Seconds since which none of them has done anything for it; None: it is not idle.
    """

    gpu: float
    idle_for: float | None = None


def together(parts: Iterable[Course], now: float) -> PodLoad | None:
    """Return the load of a pod from its parts of GPUs; None if one of them is not known.

    A pod of which one container computes is not idle, and one part unknown proves nothing.
    """
    courses = list(parts)
    if not courses or not all(course.is_fresh(now) for course in courses):
        return None
    idle = [course.idle_for(now) for course in courses]
    known = [seconds for seconds in idle if seconds is not None]
    return PodLoad(
        gpu=sum(course.mean for course in courses) / len(courses),
        idle_for=min(known) if len(known) == len(idle) else None,
    )
