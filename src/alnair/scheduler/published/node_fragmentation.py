"""F of every node as it is now, kept current from the rows that changed."""

from collections.abc import Sequence

import numpy as np

from alnair.scheduler.published import MIB_PER_MILLI
from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.published.fragmentation_rounding import Rounding
from alnair.scheduler.published.fragmentation_table import Index, Target
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.changed_rows import Renewal
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows
from alnair.traces.openb import WHOLE


class Strands:
    """What is free, and F, by row; the GPUs of a node are of one model.

    Attributes:
        target: the tables; rounding: the same without.
        model: (rows,), number of the node's GPU model.
        left: milli that are free of each GPU, shape (GPUs per node, rows).
        free: (rows,), fully free GPUs.
        fragmented: (rows,), F in milli-GPUs times the pods of the target.
    """

    def __init__(self, workload: Sequence[WorkloadClass], cluster: Cluster) -> None:
        self._columns = cluster.columns
        self._devices = devices = cluster.devices
        self._cpu = cluster.columns.resource("cpu")
        self._shape = (len(devices.models), len(devices.model))
        self._renewal = Renewal(cluster.columns)
        self._kinds: Index = np.zeros(0, np.intp)
        self.model: Index = np.zeros(0, np.intp)
        #: Added to scores of GPUs so that the lowest index wins among equals: all below 1.
        self.lowest: Column = np.linspace(1.0, 0.0, len(devices.model), endpoint=False)[:, None]
        self.rounding = Rounding(workload, tuple(devices.models))
        self.target = Target(workload, tuple(devices.models), len(devices.model))
        self.left: Index = np.zeros((len(devices.model), 0), np.intp)
        self.free: Index = np.zeros(0, np.intp)
        self.fragmented: Column = np.zeros(0)

    def covers(self, cluster: Cluster) -> bool:
        """Return whether it is of this cluster, and the tables know all of its GPUs."""
        devices = cluster.devices
        return self._devices is devices and self._shape == (len(devices.models), len(devices.model))

    def refresh(self) -> None:
        """Bring all up to date."""
        rows = self._renewal.due()
        if rows is None:
            return
        n = self._columns.n
        if self.free.size != n:
            self.left = np.zeros((len(self._devices.model), n), np.intp)
            self.free = np.zeros(n, np.intp)
            self.fragmented = np.zeros(n)
            self._kinds = np.zeros(n, np.intp)
            self.model = np.zeros(n, np.intp)
        left = np.maximum(of_rows(self._devices.slice_memory, rows), 0.0) // MIB_PER_MILLI
        self.left[:, rows] = left
        self.free[rows] = np.count_nonzero(left == WHOLE, axis=0)
        self.model[rows] = of_rows(self._devices.model, rows).max(axis=0, initial=-1)
        self._kinds[rows] = self.target.kinds(self.model[rows])
        state = self.after(0, rows)
        lost = self.target.parts.take(of_rows(self.left, rows) + state).sum(axis=0)
        if self.target.has_several:
            lost -= self.target.useful(state, self.free[rows])
        self.fragmented[rows] = lost

    def after(self, cpu_milli: int, rows: Rows) -> Index:
        """Return the states of the rows for the tables when so many millicores are taken."""
        return self.target.state(self._kinds[rows], self.cpu_left(rows) - cpu_milli)

    def cpu_left(self, rows: Rows) -> Column:
        """Return the free millicores of the rows."""
        found: Column = self._columns.free[self._cpu][rows]
        return found
