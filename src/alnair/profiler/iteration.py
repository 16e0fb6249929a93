"""How long an iteration of a training takes, from samples of what it uses.

Which metric shows the iterations depends on the job: one that waits for its input shows them in
the use of the GPU or CPU, one that keeps it busy all the time in memory or in traffic. So all that
was sampled is looked at, and the clearest cycle counts.
"""

from collections.abc import Mapping

import msgspec

from alnair.profiler.cycles.detection import Cyclicity, detect
from alnair.profiler.even_grid import Refusal, Values

#: Two periods that differ by less than this part are the same.
_ALIKE = 0.05


class Iteration(msgspec.Struct, frozen=True):
    """The iterations of a training.

    Attributes:
        seconds: Median length of one.
        confidence: 0 to 1.
        metric: Which one shows them best.
        also: Metrics that show the same.
        differ: Metrics that show another cycle, with its period in seconds.
    """

    seconds: float
    confidence: float
    metric: str
    also: tuple[str, ...]
    differ: dict[str, float]


def iteration_time(metrics: Mapping[str, tuple[Values, Values]]) -> Iteration | Refusal:
    """Tell the iteration time.

    Args:
        metrics: Name → times in seconds, and values; each at its own rate.

    Returns:
        The iterations; or why there are none to be seen, for each metric.
    """
    found: dict[str, float] = {}
    clearest: tuple[str, Cyclicity] | None = None
    reasons = []
    for name, (times, values) in metrics.items():
        answer = detect(times, values)
        if isinstance(answer, Refusal) or answer.period_s is None:
            reasons.append(f"{name}: {answer.reason}")
            continue
        found[name] = answer.period_s
        if clearest is None or answer.confidence > clearest[1].confidence:
            clearest = name, answer
    if clearest is None:
        return Refusal("; ".join(reasons) or "there is no metric")
    best, cycle = clearest
    period = found.pop(best)
    alike = {name for name, other in found.items() if abs(other / period - 1) < _ALIKE}
    return Iteration(
        seconds=period,
        confidence=cycle.confidence,
        metric=best,
        also=tuple(name for name in found if name in alike),
        differ={name: other for name, other in found.items() if name not in alike},
    )
