"""What a slice costs more on a GPU that is measured to be busy: time that its tenants want."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.busy_gpus import too_busy
from alnair.scheduler.plugins.opportunity_cost.gpu_prices import GRAIN, NO_PLACE
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Rows

#: Prices go in these parts of a GPU: measurements change all the time, and nodes that cost nearly
#: the same should not trade places with each.
_PARTS: Final = 16
_PART: Final = int(2 / GRAIN) // _PARTS


class BusyPrices:
    """Prices of one class of pods with slices.

    Above the target a GPU costs a part of a GPU more, nearly a whole one at 100 percent: of the
    tenants' time and of the pod's, as much as goes beyond. No GPU is refused for it.

    Args:
        spec: of the pods.
        cluster: its state.
        target: percent of time up to which GPUs cost nothing more; 100 is never.
        limit: percent of time beyond which no pod joins others; 0 is none.
    """

    def __init__(self, spec: PodSpec, cluster: Cluster, target: float, limit: float) -> None:
        self._spec = spec
        self._cluster = cluster
        self._target, self._limit = target, limit

    @property
    def count(self) -> bool:
        """Whether anything is measured that could change a cost."""
        return self._cluster.loads.any and (self._target < 100 or self._limit > 0)

    def of(self, rows: Rows) -> NDArray[np.int64]:
        """Return the prices, (GPUs per node, rows), in half grains, less than a GPU."""
        util = self._cluster.loads.expected_util(rows)
        parts = np.zeros(util.shape)
        if self._target < 100:
            beyond = np.minimum(util, util + self._spec.expected_util - self._target)
            parts = np.floor(beyond * (_PARTS / (100.0 - self._target)))
        found: NDArray[np.int64] = np.clip(parts, 0, _PARTS - 1).astype(np.int64) * _PART
        return found

    def refused(self, rows: Rows) -> NDArray[np.bool_] | None:
        """Return which GPUs are too busy, (GPUs per node, rows); None without a limit."""
        if not self._limit:
            return None
        return too_busy(self._spec, self._cluster, rows, self._limit)

    def add(
        self, costs: NDArray[np.int64], rows: Rows, opening: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the costs of each row's best GPU, and what it costs more.

        Args:
            costs: (GPUs per node, rows), without the prices, in half grains.
            rows: which.
            opening: what a free GPU costs more; the costs of such are odd.
        """
        prices = (costs & 1) * opening
        if self.count:
            prices += self.of(rows)
        if self.count and (refused := self.refused(rows)) is not None:
            costs = np.where(refused, NO_PLACE, costs)
        best = (costs + prices).argmin(axis=0)[None, :]
        return (
            np.take_along_axis(costs, best, 0)[0],
            np.take_along_axis(prices, best, 0)[0],
        )
