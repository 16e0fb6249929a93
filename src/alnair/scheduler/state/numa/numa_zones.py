"""The NUMA zones of nodes as columns, and what of them is spoken for but not yet reported.

An exporter's report lags behind our own bindings. What a pod takes that the report cannot count
yet is taken from the zone that its kubelet will choose, until a later report comes.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.numa_topology import FAR, SINGLE_NUMA, NumaTopology
from alnair.scheduler.state.nodes.columns import Column, Mask

#: What a zone has of a resource that it does not report.
ABSENT: Final = -1.0


class Take(msgspec.Struct, frozen=True, gc=False):
    """An amount of a resource (its column) of a zone (its slot)."""

    column: int
    slot: int
    amount: float


class FreeInZones(msgspec.Struct, frozen=True):
    """What a row's zones have left, by resource and zone id; `<=` = no pod fits that did not."""

    aligned: bool
    pod_scope: bool
    unreadable: bool
    free: dict[tuple[str, int], float]

    def __le__(self, other: "FreeInZones") -> bool:
        alike = (self.aligned, self.pod_scope, self.unreadable) == (
            other.aligned,
            other.pod_scope,
            other.unreadable,
        )
        if not alike or self.free.keys() != other.free.keys():
            return False
        return all(amount <= other.free[key] for key, amount in self.free.items())


class Zones:
    """Zones as columns: `slot` is a zone's position on its node, by ascending id.

    Attributes:
        any: whether any node ever had a topology.
        known: (rows,), the node's zones are reported.
        aligned: (rows,), it aligns to a single zone.
        pod_scope: (rows,), it aligns pods as a whole.
        unreadable: (rows,), it does so, and its report cannot be read.
        ids: (slots, rows), NUMA id, -1 where there is no zone.
        costs: (slots, slots, rows), distances.
        most: (rows,), the number of zones that the node's Topology Manager allows for.
        free: (resources, slots, rows), base units that are left, `ABSENT` where not reported.
    """

    def __init__(self) -> None:
        self.any = False
        self.resources: dict[str, int] = {}
        self._available: dict[int, Column] = {}
        self._taken: dict[int, dict[str, tuple[Take, ...]]] = {}
        self.known: Mask = np.zeros(0, bool)
        self.aligned: Mask = np.zeros(0, bool)
        self.pod_scope: Mask = np.zeros(0, bool)
        self.unreadable: Mask = np.zeros(0, bool)
        self.most: Column = np.zeros(0)
        self.ids: NDArray[np.int16] = np.zeros((0, 0), np.int16)
        self.costs: NDArray[np.int16] = np.zeros((0, 0, 0), np.int16)
        self.free: Column = np.zeros((0, 0, 0))

    def describe(self, row: int, topology: NumaTopology | None) -> None:
        """Set the zones of a row; what is taken of them must be taken again."""
        self._taken.pop(row, None)
        if topology is None and not self.any:
            return
        zones = topology.zones if topology else ()
        self.grow(max(len(zones), 1), row + 1)
        names = {name for zone in zones for name, _ in zone.available}
        for name in sorted(names - self.resources.keys()):
            self._add(name)
        self.any = self.any or topology is not None
        self.known[row] = topology is not None
        self.aligned[row] = topology is not None and topology.policy == SINGLE_NUMA
        self.pod_scope[row] = topology is not None and topology.pod_scope
        self.unreadable[row] = self.aligned[row] and topology is not None and bool(topology.problem)
        self.most[row] = topology.max_zones if topology else 0
        self.ids[:, row] = -1
        self.costs[:, :, row] = FAR
        self.free[:, :, row] = ABSENT
        slots = {zone.id: slot for slot, zone in enumerate(zones)}
        for slot, zone in enumerate(zones):
            self.ids[slot, row] = zone.id
            for other, cost in zone.costs:
                if other in slots:
                    self.costs[slot, slots[other], row] = min(max(cost, 0), FAR)
            for name, amount in zone.available:
                self.free[self.resources[name], slot, row] = amount
        self._available[row] = self.free[:, :, row].copy()

    def take(self, row: int, uid: str, takes: Iterable[Take]) -> None:
        """Take amounts for a pod."""
        self._taken.setdefault(row, {})[uid] = tuple(takes)
        self._recount(row)

    def release(self, row: int, uid: str) -> bool:
        """Give back what was taken for a pod; returns whether anything was."""
        taken = self._taken.get(row)
        if not taken or taken.pop(uid, None) is None:
            return False
        self._recount(row)
        return True

    def release_all(self, row: int) -> None:
        """Give back what was taken for any pod."""
        if self._taken.pop(row, None):
            self._recount(row)

    def room(self, row: int) -> "FreeInZones":
        """Return what of a row decides whether a pod may be aligned there."""
        names = {column: name for name, column in self.resources.items()}
        free = {
            (names[column], int(self.ids[slot, row])): float(self.free[column, slot, row])
            for column, slot in np.argwhere(self.free[:, :, row] >= 0).tolist()
        }
        scope = bool(self.pod_scope[row])
        return FreeInZones(bool(self.aligned[row]), scope, bool(self.unreadable[row]), free)

    def any_taken(self, row: int) -> bool:
        """Return whether anything is taken on the row."""
        return bool(self._taken.get(row))

    def _recount(self, row: int) -> None:
        # From the report each time: what is given back must not exceed it, in any order.
        available = self._available[row]
        free = np.full(self.free.shape[:2], ABSENT)
        free[: available.shape[0], : available.shape[1]] = available
        for takes in self._taken.get(row, {}).values():
            for take in takes:
                if free[take.column, take.slot] >= 0:
                    free[take.column, take.slot] -= take.amount
        reported = self.free[:, :, row] >= 0
        self.free[:, :, row] = np.where(reported, np.maximum(free, 0), ABSENT)

    def _add(self, name: str) -> None:
        self.resources[name] = len(self.resources)
        self.free = np.concatenate([self.free, np.full((1, *self.free.shape[1:]), ABSENT)])

    def grow(self, slots: int, rows: int) -> None:
        """Make room; existing entries keep their place."""
        old_slots, old_rows = self.ids.shape
        slots, rows = max(slots, old_slots), max(rows, old_rows)
        if (slots, rows) == (old_slots, old_rows):
            return
        more, longer = (0, slots - old_slots), (0, rows - old_rows)
        self.known = np.pad(self.known, longer)
        self.aligned = np.pad(self.aligned, longer)
        self.pod_scope = np.pad(self.pod_scope, longer)
        self.unreadable = np.pad(self.unreadable, longer)
        self.most = np.pad(self.most, longer)
        self.ids = np.pad(self.ids, (more, longer), constant_values=-1)
        self.costs = np.pad(self.costs, (more, more, longer), constant_values=FAR)
        self.free = np.pad(self.free, ((0, 0), more, longer), constant_values=ABSENT)
