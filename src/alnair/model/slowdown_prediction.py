"""How much pods that share a GPU slow one another down: the interface, and a plain model of it."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Percents = NDArray[np.float64]


class InterferenceModel(Protocol):
    """Predicts slow-downs; what is learned from history takes the place of `Contention`."""

    def slowdown(self, own: float, others: Percents) -> Percents:
        """Return by how much a pod and its neighbours slow down together: 1 = not at all.

        Args:
            own: percent of a GPU's time that the pod would use alone, 0 if nobody knows.
            others: percent that is in use on each GPU, of any shape.
        """
        ...


class Contention:
    """A GPU has 100 percent of time: what is asked beyond that, all of its tenants wait for.

    That is the least that sharing costs. Measured pairs come close to it as long as each uses less
    than 70 % (original Alnair, interference analysis, 2021); caches and memory bandwidth add more.
    """

    def slowdown(self, own: float, others: Percents) -> Percents:
        """Return the asked time over the time that there is, at least 1."""
        together: Percents = np.maximum((own + others) / 100.0, 1.0)
        return np.where(others > 0, together, 1.0)
