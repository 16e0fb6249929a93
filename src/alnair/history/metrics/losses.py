"""Stays that were cut short: how often, and at what cost."""

from collections import Counter
from typing import Final

from alnair.history.history import History
from alnair.history.metrics.columns import counted
from alnair.history.metrics.result import Disruption

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
