"""Who holds what: every pod that is known, and what is booked for it on its node.

The only writer of the columns and of the device table.
"""

import enum
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from alnair.model import names
from alnair.model.cluster import Gpu, Node
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.assignment import bookings_of
from alnair.scheduler.columns import Column, Columns
from alnair.scheduler.devices import Booking, Devices
from alnair.scheduler.framework import Cluster

_VECTORS_KEPT = 50_000


class State(enum.Enum):
    """Where a pod is in its life, as far as scheduling goes."""

    #: Not on a node.
    PENDING = enum.auto()
    #: A node is booked for it and its Binding is on the way.
    ASSUMED = enum.auto()
    #: The API server says that it is on its node.
    BOUND = enum.auto()
    #: Succeeded or failed: it holds nothing.
    FINISHED = enum.auto()


class Record:
    """A pod and what is booked for it."""

    __slots__ = ("bookings", "evicting", "message", "node", "placed_at", "pod", "row", "state")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.state = State.PENDING
        #: Name of the node that it is booked on (or will be, once the node is known).
        self.node = ""
        #: Row that it is booked on, -1 if it is not.
        self.row = -1
        self.bookings: tuple[Booking, ...] = ()
        #: When it was placed, or first seen placed.
        self.placed_at = 0.0
        #: The last refusal that its owner was told.
        self.message = ""
        self.evicting = False


class _Vector:
    """A class's requests as arrays."""

    __slots__ = ("amounts", "columns", "scored")

    def __init__(self, spec: PodSpec, columns: Columns) -> None:
        self.columns: NDArray[np.intp] = np.array(
            [columns.resource(name) for name, _ in spec.requests], np.intp
        )
        self.amounts: Column = np.array([float(amount) for _, amount in spec.requests])
        self.scored = (float(spec.scored_cpu), float(spec.scored_memory))


class Accounts:
    """The books.

    Attributes:
        records: pods by uid.
        on_row: uids of the pods booked on each row, in the order of booking.
    """

    def __init__(self, seed: int = 0) -> None:
        self.columns = Columns(seed)
        self.devices = Devices()
        self.cluster = Cluster(self.columns, self.devices)
        self.records: dict[str, Record] = {}
        self.on_row: dict[int, dict[str, Record]] = {}
        self._homeless: dict[str, dict[str, Record]] = {}
        self._vectors: dict[PodSpec, _Vector] = {}

    def put_node(self, node: Node) -> bool:
        """Add or update a node, and book the pods that were waiting for it; returns whether it changed."""
        old_row = self.columns.row_of.get(node.name)
        old = self.columns.nodes[old_row] if old_row is not None else None
        if old == node:
            return False  # a heartbeat
        row = self.columns.put(node)
        self.devices.grow(0, row + 1)
        gpus, factor = _gpus(node)
        if old is None or _gpus(old) != (gpus, factor):
            self._describe(row, gpus, factor)
        for record in self._homeless.pop(node.name, {}).values():
            self._book(record, row, bookings_of(record.pod, row, self.devices))
        return True

    def remove_node(self, name: str) -> None:
        """Forget a node; pods that are on it are booked again if it comes back."""
        row = self.columns.row_of.get(name)
        if row is None:
            return
        for record in list(self.on_row.get(row, {}).values()):
            self._unbook(record)
            self._homeless.setdefault(name, {})[record.pod.uid] = record
        self.devices.describe(row, ())
        self.columns.remove(name)

    def place(
        self,
        record: Record,
        node: str,
        state: State,
        now: float,
        bookings: tuple[Booking, ...] | None = None,
    ) -> None:
        """Book the pod on a node: these parts of GPUs, or those that its assignment names."""
        record.state = state
        record.node = node
        record.placed_at = now
        row = self.columns.row_of.get(node)
        if row is None:
            self._homeless.setdefault(node, {})[record.pod.uid] = record
            return
        if bookings is None:
            bookings = bookings_of(record.pod, row, self.devices)
        self._book(record, row, bookings)

    def release(self, record: Record, state: State) -> None:
        """Give back all that is booked for the pod."""
        if record.row >= 0:
            self._unbook(record)
        else:
            self._homeless.get(record.node, {}).pop(record.pod.uid, None)
        record.node = ""
        record.state = state

    def overcommitted(self, row: int) -> bool:
        """Return whether more is booked on the row than it has, of anything."""
        return bool((self.columns.free[:, row] < 0).any()) or self.devices.overcommitted(row)

    def to_relieve(
        self, row: int, candidates: Iterable[Record], going: Iterable[Record]
    ) -> list[Record]:
        """Return the first candidates whose leaving ends the row's over-commitment, counting who is going.

        A candidate whose leaving would not help is passed over.
        """
        chosen: list[Record] = []
        undone: list[tuple[Record, tuple[Booking, ...]]] = []
        for record in going:
            undone.append((record, record.bookings))
            self._unbook(record)
        for record in candidates:
            if not self.overcommitted(row):
                break
            before = self.columns.free[:, row].clip(max=0).sum(), self.devices.overcommitted(row)
            held = record.bookings
            self._unbook(record)
            after = self.columns.free[:, row].clip(max=0).sum(), self.devices.overcommitted(row)
            undone.append((record, held))
            if after != before:
                chosen.append(record)
        for record, held in undone:
            self._book(record, row, held)
        return chosen

    def _book(self, record: Record, row: int, bookings: tuple[Booking, ...]) -> None:
        vector = self._vector(record.pod.spec)
        self.columns.book(row, vector.columns, vector.amounts, vector.scored)
        if bookings:
            self.devices.book(row, bookings)
        record.row = row
        record.bookings = bookings
        self.on_row.setdefault(row, {})[record.pod.uid] = record

    def _unbook(self, record: Record) -> None:
        vector = self._vector(record.pod.spec)
        cpu, memory = vector.scored
        self.columns.book(record.row, vector.columns, -vector.amounts, (-cpu, -memory))
        if record.bookings:
            self.devices.book(record.row, record.bookings, sign=-1)
        del self.on_row[record.row][record.pod.uid]
        record.row = -1
        record.bookings = ()

    def _describe(self, row: int, gpus: tuple[Gpu, ...], factor: float) -> None:
        self.devices.describe(row, gpus, factor)
        for record in self.on_row.get(row, {}).values():
            record.bookings = bookings_of(record.pod, row, self.devices)
            self.devices.book(row, record.bookings)
        self.columns.booked.add(row)

    def _vector(self, spec: PodSpec) -> _Vector:
        vector = self._vectors.get(spec)
        if vector is None:
            if len(self._vectors) >= _VECTORS_KEPT:
                self._vectors.clear()
            vector = self._vectors[spec] = _Vector(spec, self.columns)
        return vector


def _gpus(node: Node) -> tuple[tuple[Gpu, ...], float]:
    """Return the node's GPUs, and how far soft compute may be promised beyond 100 %.

    A node that publishes a number of GPUs but does not describe them has that many nameless ones, which can
    only be used whole. A description that cannot be read means none: better no GPU than a wrong one.
    """
    if node.problem:
        return (), 1.0
    gpus = node.gpus
    if not gpus:
        model = node.labels.get(names.GPU_MODEL_LABEL, "")
        count = node.allocatable.get(names.GPU, 0)
        return tuple(Gpu("", index, model, 0) for index in range(count)), 1.0
    promised = node.allocatable.get(names.VGPU_COMPUTE, 0)
    return gpus, max(1.0, promised / (100 * len(gpus)))
