"""What a whole job does, from what each of its pods does; the owner's annotation `workload`.

A job is as far as its last pod, and done when its slowest is. What most pods do, it does.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from alnair.model.api_types import JobWorkload, SlowRank, Workload

#: Stragglers that are named.
MOST_NAMED: Final = 16
#: A kind, phase or bottleneck is the job's if so many of its pods have it.
_MOST: Final = 0.5
#: Periods this near to each other are of pods that wait for each other.
_TOGETHER: Final = 0.1
#: Of two pods, who is busy longer may be who waits.
_LEAST_RANKS: Final = 3


class Member(msgspec.Struct, frozen=True):
    """A pod of a job, and what it does.

    Attributes:
        pod: Its name.
        at: When that was true, seconds since the epoch.
        workload: What it does.
        rank: None where it is not known.
        role: Only pods of one role are compared.
    """

    pod: str
    at: float
    workload: Workload
    rank: int | None = None
    role: str = ""


def job_workload(
    members: Iterable[Member], now: float, t: str, stragglers: Sequence[SlowRank] = ()
) -> JobWorkload:
    """Return the document.

    Args:
        members: The pods of which something is known; one at least.
        now: Seconds since the epoch.
        t: The same, RFC 3339.
        stragglers: Ranks that are slow.
    """
    known = list(members)
    works = [one.workload for one in known]

    def left(of: Callable[[Workload], float | None]) -> float | None:
        found = [
            max(0.0, value - max(0.0, now - one.at))
            for one in known
            if (value := of(one.workload)) is not None
        ]
        return _short(max(found, default=None))

    def least(of: Callable[[Workload], float | None]) -> float | None:
        return min((value for work in works if (value := of(work)) is not None), default=None)

    step = least(lambda work: work.step)
    slow = sorted(stragglers, key=lambda one: -one.slowdown)[:MOST_NAMED]
    return JobWorkload(
        1,
        t,
        pods=len(known),
        type=_common([work.type for work in works]),
        framework=_common([work.framework for work in works]),
        period_s=max((work.period_s for work in works if work.period_s is not None), default=None),
        phase=_common([work.phase for work in works]),
        step=None if step is None else int(step),
        epoch=least(lambda work: work.epoch),
        progress=least(lambda work: work.progress),
        eta_s=left(lambda work: work.eta_s),
        eta_low_s=left(lambda work: work.eta_low_s),
        eta_high_s=left(lambda work: work.eta_high_s),
        bottleneck=_common([work.bottleneck for work in works]),
        idle=sum(work.idle_since is not None for work in works),
        stragglers=tuple(slow),
    )


def wait_for_each_other(periods: Collection[float]) -> bool:
    """Tell whether pods take the same time for a step, so that who works longest holds up the rest.

    Args:
        periods: Seconds of each pod's step; 0: not known.
    """
    if len(periods) < _LEAST_RANKS or not all(periods):
        return False
    return max(periods) <= (1 + _TOGETHER) * min(periods)


def _common(values: Sequence[str | None]) -> str | None:
    """What more than half of those that are known have in common."""
    counts = Counter(value for value in values if value is not None)
    for value, count in counts.most_common(1):
        if count > _MOST * counts.total():
            return value
    return None


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")
