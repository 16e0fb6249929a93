"""What a placement costs beside all else where pods leave again.

Room on nodes and GPUs in use comes back by itself there. What gets scarce are whole ones: those
that nobody opened, and nodes that will soon be free. So it costs to open an idle node or, for a
slice, a free GPU; to make a node wait for one more pod, the more the fewer it waits for; and to go
where pods that want most of a node could go, as far as such pods come. All of it counts by the
turnover, and nothing where pods stay.
"""

from typing import Final

import numpy as np

from alnair.scheduler.plugins.opportunity_cost.bid_prices import BidPrices
from alnair.scheduler.plugins.opportunity_cost.gpu_prices import GRAIN
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows, of_rows

#: What opening an idle node costs, in GPUs, where as many pods leave as come: a whole node is had
#: again only if nobody opens it meanwhile.
_OPENING: Final = 1.0
#: What a slice costs more on a free GPU, in GPUs. By what sizes are asked for, two slices may cost
#: the least on two GPUs, which is right where all room is taken in the end.
_OPENING_GPU: Final = 0.25
#: What it costs to wait for a pod more, in GPUs, on a node that waits for none. The last of n pods
#: ends after 1 + 1/2 + ... + 1/n times as long as one pod runs, so one more makes that 1/(n + 1)
#: longer.
_WAITING: Final = 0.5


class Departures:
    """Costs of one class of pods.

    Args:
        cluster: its state.
        bids: its prices of nodes that are wanted whole.
        turnover: pods that leave for each that comes, at most 1.
        gpus: that the pod opens or shares.

    Attributes:
        count: whether there are any.
        opening_gpu: what a slice costs more on a free GPU, in half grains: an even number.
    """

    def __init__(self, cluster: Cluster, bids: BidPrices, turnover: float, gpus: int) -> None:
        self._columns, self._devices = cluster.columns, cluster.devices
        self._bids = bids
        self._turnover = turnover
        self._most = 2 * gpus
        self.count = turnover > 0
        self.opening_gpu = int(_OPENING_GPU * turnover / GRAIN) * 2

    def of(self, rows: Rows, idle: Mask) -> Column:
        """Return the costs, (rows,), in GPUs; `idle` tells of rows that no GPU is in use."""
        gpus = of_rows(self._devices.count, rows)
        cost = _WAITING / (self._columns.pods(rows) + 1.0)
        cost += np.where(idle, _OPENING, 0.0)
        # Who takes more than half of the node is one of those whom it is kept for.
        cost += np.where(gpus >= self._most, of_rows(self._bids.whole, rows), 0.0)
        cost *= self._turnover
        cost[gpus == 0] = 0.0
        return cost

    def of_one(self, row: int, *, idle: bool) -> float:
        """Return the same of one row, in plain numbers."""
        gpus = self._devices.count.item(row)
        if not gpus:
            return 0.0
        cost = _WAITING / (self._columns.pods_on(row) + 1.0)
        cost += _OPENING if idle else 0.0
        cost += self._bids.whole.item(row) if gpus >= self._most else 0.0
        return cost * self._turnover
