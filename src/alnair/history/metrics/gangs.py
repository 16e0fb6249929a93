"""Gangs: which ran whole, and what they held while they were not."""

from collections.abc import Mapping

import numpy as np

from alnair.history.history import History
from alnair.history.metrics.result import Gangs
from alnair.history.metrics.sizes import distribution
from alnair.history.metrics.times import JobTimes

_HOUR = 3600.0


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
