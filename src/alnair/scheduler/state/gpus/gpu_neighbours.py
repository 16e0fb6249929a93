"""Who would be a pod's one neighbour on a GPU: the kind of workload of its only tenant, as columns.

Pairs are what is measured, so of GPUs with several tenants nothing is told.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from alnair.scheduler.state.gpus.devices import Booking, Devices
from alnair.scheduler.state.nodes.columns import Rows

#: Numbers of kinds, of the shape (GPUs per node, rows).
Kinds = NDArray[np.int64]


class Neighbours:
    """Kinds of tenants by slot and row, as in the device table.

    The sum of the tenants' numbers is kept, which is the number of the tenant where there is one:
    so booking costs an addition, and nothing for pods of which nobody says what they compute.

    Args:
        devices: says how many tenants there are.

    Attributes:
        number: of each kind seen, from 1 on; 0 stands for none.
    """

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self.number: dict[str, int] = {"": 0}
        self._sum: Kinds = np.zeros((0, 0), np.int64)

    def book(self, row: int, kind: str, bookings: Iterable[Booking], sign: int = 1) -> None:
        """Add a tenant of this kind, or take it away with `sign=-1`."""
        if not kind:
            return
        number = self.number.setdefault(kind, len(self.number))
        self._grow()
        for booking in bookings:
            if not booking.whole:
                self._sum[booking.slot, row] += sign * number

    def forget(self, row: int) -> None:
        """Empty a row; who is there must be booked again."""
        if row < self._sum.shape[1]:
            self._sum[:, row] = 0

    def kinds(self, rows: Rows) -> Kinds:
        """Return the number of the kind of each GPU's only tenant, 0 where nobody can say."""
        self._grow()
        kinds: Kinds = self._sum[:, rows] * (self._devices.tenants(rows) == 1)
        return kinds

    def _grow(self) -> None:
        shape, old = self._devices.model.shape, self._sum.shape
        if shape != old:
            self._sum = np.pad(self._sum, ((0, shape[0] - old[0]), (0, shape[1] - old[1])))
