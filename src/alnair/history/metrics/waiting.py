"""Pods without a node, over time."""

import numpy as np

from alnair.history.history import History
from alnair.history.metrics.columns import asked, counted
from alnair.history.metrics.steps import Steps, held


def waiting(history: History) -> tuple[Steps, Steps]:
    """Return how many pods have no node, and the GPUs that they ask for.

    A pod that was evicted and gets a node again waits between the two.
    """
    spans: list[tuple[float, float, float]] = []
    for pod in counted(history):
        since = pod.submitted
        for stay in pod.stays:
            spans.append((since, stay.begin, asked(pod)))
            since = history.end if stay.end is None else stay.end
        if not pod.stays:
            spans.append((since, history.end if pod.gone is None else pod.gone, asked(pod)))
    rows = np.array(spans, dtype=np.float64).reshape(-1, 3)
    rows = rows[rows[:, 1] > rows[:, 0]]
    begins, ends, gpus = rows[:, 0], rows[:, 1], rows[:, 2]
    return held(begins, ends, np.ones(len(rows))), held(begins, ends, gpus)
