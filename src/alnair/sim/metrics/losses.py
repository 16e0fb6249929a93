"""What went wrong, and what was shared: stays cut short, gangs, co-located jobs."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from alnair.sim.history import History
from alnair.sim.metrics.columns import counted
from alnair.sim.metrics.result import Disruption, Gangs, Pair, Sharing
from alnair.sim.metrics.sizes import distribution
from alnair.sim.metrics.times import JobTimes

#: Ends of stays before their work was done.
CUT_SHORT: Final = ("preempted", "evicted", "lost", "failed")
_HOUR = 3600.0


def disruption(history: History) -> Disruption:
    """Return how often and at what cost stays were cut short within the history."""
    ended: Counter[str] = Counter(dict.fromkeys(CUT_SHORT, 0))
    wasted = dict.fromkeys(CUT_SHORT, 0.0)
    jobs = set()
    for pod in counted(history):
        for stay in pod.stays:
            if stay.how not in wasted or stay.end is None or stay.end < 0:
                continue
            ended[stay.how] += 1
            wasted[stay.how] += stay.lost * sum(part.milli for part in stay.gpus) / 1000.0 / _HOUR
            jobs.add(pod.job)
    return Disruption(dict(ended), wasted, len(jobs))


def gangs(history: History, times: Mapping[str, JobTimes]) -> Gangs:
    """Return which gangs ran whole."""
    found = [times[job.name] for job in history.jobs.values() if job.gang]
    whole = [t for t in found if t.started is not None]
    tried = sum(t.first is not None for t in found)
    return Gangs(
        len(found),
        len(whole),
        tried - len(whole),
        len(found) - tried,
        100.0 * len(whole) / tried if tried else None,
        distribution(np.array([t.spread for t in whole])),
        sum(t.partial for t in found) / _HOUR,
    )


def sharing(history: History) -> Sharing:
    """Return how fast co-located jobs ran, as parts of their speeds alone, by their kinds.

    The normalised throughput of a pair is the sum of both; source: Narayanan et al., *Gavel*,
    OSDI'20, section 3.1.
    """
    sums: dict[tuple[str, str], list[float]] = {}
    rates = []
    for pair in history.pairs:
        kinds = [
            (history.jobs[name].kind if name in history.jobs else "", rate)
            for name, rate in ((pair.first, pair.first_rate), (pair.second, pair.second_rate))
        ]
        (first, one), (second, two) = sorted(kinds)
        row = sums.setdefault((first, second), [0.0, 0.0, 0.0])
        for column, amount in enumerate((1.0, one, two)):
            row[column] += amount * pair.seconds
        rates += [one, two]
    pairs = [
        Pair(*kinds, seconds, one / seconds, two / seconds, (one + two) / seconds)
        for kinds, (seconds, one, two) in sums.items()
        if seconds > 0
    ]
    pairs.sort(key=lambda pair: (-pair.seconds, pair.first, pair.second))
    seconds = sum(pair.seconds for pair in pairs)
    throughput = sum(pair.throughput * pair.seconds for pair in pairs)
    return Sharing(
        seconds,
        throughput / seconds if seconds else None,
        throughput / seconds / 2 if seconds else None,
        min(rates, default=None),
        pairs,
    )
