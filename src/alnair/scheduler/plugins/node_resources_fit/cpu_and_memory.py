"""How full a node would be by cpu and memory, weighed alike: what most profiles score by.

The same as `Allocation` says, several times faster; every decision comes through here.
"""

import math

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows, single


class Capacities:
    """What usual scores divide by, computed once for all classes as long as no node changes."""

    def __init__(self, cluster: Cluster) -> None:
        self.columns = cluster.columns
        self._devices = cluster.devices
        #: (2, rows), cpu and memory of the nodes, at least 1.
        self.divisors: Column = np.zeros((2, 0))
        #: (rows,), how many of the two the node has any of, at least 1.
        self.counts: Column = np.zeros(0)
        #: The node has both, everywhere: halving is much faster than dividing.
        self.both = False
        #: (rows,), 1 where there are no GPUs, else 0: as numbers, for masks multiply slowly.
        self.gpuless: Column = np.zeros(0)
        #: (rows,): numpy is more than twice as fast with a column as with the number 0.
        self.zeros: Column = np.zeros(0)
        self._read = -1
        self._hundredfold: Column = np.zeros((2, 0))
        self._nodes_seen = self._booked_seen = -1

    def refresh(self) -> None:
        """Follow the nodes."""
        if self._read != self.columns.nodes_changed.end:
            self._read = self.columns.nodes_changed.end
            there = self.columns.allocatable[:2]  # these are cpu and memory
            self.divisors = np.maximum(there, 1.0)
            self.counts = np.maximum((there > 0).sum(axis=0), 1.0)
            self.both = bool((self.counts[: self.columns.n] == 2.0).all())
            # GPUs come and go with changes of their node.
            self.zeros = np.zeros(there.shape[1])
            self.gpuless = (self._devices.count == 0).astype(float)

    def hundredfold_left(self) -> Column:
        """Return 100 times what no pod is counted to use of cpu and memory, shape (2, rows).

        Kept, since between two classes a few rows change: else each would compute it of all.
        """
        columns = self.columns
        booked = columns.booked.since(self._booked_seen)
        many = booked is None or len(booked) > columns.n // 8
        if many or self._nodes_seen != columns.nodes_changed.end:
            self._hundredfold = (columns.allocatable[:2] - columns.scored) * 100.0
        else:
            # Most often it is one, and plain numbers are several times faster.
            for row in set(booked or ()):
                for resource in (0, 1):
                    used = columns.scored.item(resource, row)
                    left = columns.allocatable.item(resource, row) - used
                    self._hundredfold[resource, row] = left * 100.0
        self._nodes_seen, self._booked_seen = columns.nodes_changed.end, columns.booked.end
        return self._hundredfold


class CpuAndMemory:
    """Cpu and memory, weighed alike: the same as `Allocation`, several times faster."""

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(
        self,
        spec: PodSpec,
        cluster: Cluster,
        capacities: Capacities,
        *,
        least: bool,
        in_order: bool,
    ) -> None:
        self._columns = cluster.columns
        self._capacities = capacities
        self._devices = cluster.devices if in_order else None
        self._cpu, self._memory = float(spec.scored_cpu), float(spec.scored_memory)
        self._requested = np.array([[self._cpu], [self._memory]])
        self._hundredfold = self._requested * 100.0
        self._least = least

    def __call__(self, rows: Rows) -> Column:
        """Return 0-100 for each row, with GPU nodes in order 0-101."""
        self._capacities.refresh()
        if (row := single(rows)) is not None:
            return np.array([self._of(row)])
        # What scoring assumes of silent containers may exceed the node: that is a full node.
        if self._least:
            parts = of_rows(self._capacities.hundredfold_left(), rows) - self._hundredfold
            np.maximum(parts, of_rows(self._capacities.zeros, rows), out=parts)
        else:
            parts = of_rows(self._columns.scored, rows) + self._requested
            np.minimum(parts, of_rows(self._columns.allocatable[:2], rows), out=parts)
            parts *= 100.0
        parts /= of_rows(self._capacities.divisors, rows)
        np.floor(parts, out=parts)
        # A resource that the node has nothing of is 0, and does not count.
        score: Column = parts[0] + parts[1]
        if self._capacities.both:
            score *= 0.5
        else:
            score /= self._capacities.counts[rows]
        np.floor(score, out=score)
        if self._devices is not None:
            score += 1.0
            score *= self._capacities.gpuless[rows]
        return score

    def _of(self, row: int) -> float:
        """Return the score of one row: in plain numbers, since arrays of one are slow."""
        if self._devices is not None and self._devices.count[row]:
            return 0.0
        total = 0.0
        for resource, requested in ((0, self._cpu), (1, self._memory)):
            capacity = self._columns.allocatable.item(resource, row)
            used = self._columns.scored.item(resource, row) + requested
            part = max(capacity - used, 0.0) if self._least else min(used, capacity)
            total += math.floor(part * 100.0 / max(capacity, 1.0))
        score = math.floor(total / self._capacities.counts.item(row))
        return float(score + (self._devices is not None))
