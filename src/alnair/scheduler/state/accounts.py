"""Who holds what: every pod that is known, and what is booked for it on its node.

The only writer of the columns and of the device table.
"""

import enum
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.nodes import Gpu, Image, Node
from alnair.model.volumes import ClaimBinding
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Booking, Devices
from alnair.scheduler.state.gpus.gpu_assignment import assigned, guess
from alnair.scheduler.state.gpus.gpu_loads import Loads
from alnair.scheduler.state.gpus.gpu_neighbours import Neighbours
from alnair.scheduler.state.gpus.node_gpus import carried_over, gpus_of
from alnair.scheduler.state.nodes.columns import Column, Columns
from alnair.scheduler.state.nodes.node_images import NodeImages, image_kind
from alnair.scheduler.state.numa.numa_bookings import ZoneBookings
from alnair.scheduler.state.numa.numa_zones import Zones
from alnair.scheduler.state.objects.api_objects import Objects
from alnair.scheduler.state.objects.namespace_usage import Usage
from alnair.scheduler.state.objects.volume_index import VolumeIndex
from alnair.scheduler.state.observations import Observations
from alnair.scheduler.state.pods.host_ports import HostPorts
from alnair.scheduler.state.pods.pod_index import PodIndex

_VECTORS_KEPT: Final = 50_000


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

    __slots__ = (
        "awaits_storage",
        "bookings",
        "charged",
        "claims",
        "decided",
        "evicting",
        "expected",
        "group",
        "in_flight",
        "indexed",
        "message",
        "node",
        "placed_at",
        "pod",
        "queued_at",
        "refused_by",
        "row",
        "spec",
        "state",
        "tries",
        "vector",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        #: Its class (`alnair.scheduler.state.pods.pod_classes`).
        self.spec = pod.spec
        self.state = State.PENDING
        #: Name of its gang; does not change while its Binding is on the way.
        self.group = ""
        #: Name of the node that it is booked on (or will be, once the node is known).
        self.node = ""
        #: Row that it is booked on, -1 if it is not.
        self.row = -1
        #: What is booked on that row: of its resources, and of its GPUs.
        self.vector: Vector | None = None
        self.bookings: tuple[Booking, ...] = ()
        #: What its namespace's usage counts for it; None if nothing.
        self.charged: PodSpec | None = None
        #: What is to be written for its claims before its Binding.
        self.claims: tuple[ClaimBinding, ...] = ()
        #: The pod as it is counted in the pod index.
        self.indexed = pod
        #: It stands for a pod that is not there, but for which room is held.
        self.expected = False
        #: Its GPUs are those chosen here; the pod that we know may not say so yet.
        self.decided = False
        #: When it was placed, or bound if it is.
        self.placed_at = 0.0
        #: Its Binding is on the way.
        self.in_flight = False
        #: Its Binding waits for storage, perhaps for minutes.
        self.awaits_storage = False
        #: When it entered the queue, how often it was tried, and which plugins refused it last.
        self.queued_at = 0.0
        self.tries = 0
        self.refused_by: tuple[str, ...] = ()
        #: The last refusal that its owner was told.
        self.message = ""
        #: Why it is being evicted; empty if it is not.
        self.evicting = ""

    @property
    def key(self) -> tuple[str, PodSpec]:
        """What it has in common with pods that have the same chances."""
        return self.pod.scheduler, self.spec

    def replacement(self) -> "Record":
        """Return a pod like this one that has no place yet, as its controller would create it."""
        record = Record(msgspec.structs.replace(self.pod, node="", assignment=()))
        record.spec = self.spec
        return record


class RemovedBooking(msgspec.Struct, frozen=True):
    """Where a pod was booked that was lifted off the books for a moment."""

    row: int
    bookings: tuple[Booking, ...]


class Vector:
    """A class's requests as arrays."""

    __slots__ = ("amounts", "columns", "scored", "spec")

    def __init__(self, spec: PodSpec, columns: Columns) -> None:
        self.spec = spec
        self.columns: NDArray[np.intp] = np.array(
            [columns.resource(name) for name, _ in spec.requests], np.intp
        )
        self.amounts: Column = np.array([float(amount) for _, amount in spec.requests])
        self.scored = (float(spec.scored_cpu), float(spec.scored_memory))


class Accounts:
    """The books.

    Attributes:
        records: pods by uid.
        on_row: the pods booked on each row by uid, in the order of booking.
    """

    def __init__(self, seed: int = 0, order: Sequence[str] = ()) -> None:
        self.columns = Columns(seed, order)
        self.devices = Devices()
        self.zones = Zones()
        self.loads = Loads()
        self.neighbours = Neighbours(self.devices)
        self.pods = PodIndex()
        self.objects = Objects()
        self.volumes = VolumeIndex()
        self.usage = Usage()
        #: The pods on nodes that have a time limit, by uid.
        self.limited: set[str] = set()
        self.ports = HostPorts()
        self.images = NodeImages()
        self.cluster = Cluster(
            columns=self.columns,
            devices=self.devices,
            zones=self.zones,
            loads=self.loads,
            neighbours=self.neighbours,
            pods=self.pods,
            volumes=self.volumes,
            objects=self.objects,
            ports=self.ports,
            images=self.images,
            observations=Observations(),
        )
        self.records: dict[str, Record] = {}
        self.on_row: dict[int, dict[str, Record]] = {}
        self._zone_books = ZoneBookings(self.zones, self.columns, self.objects, self.on_row)
        self._homeless: dict[str, dict[str, Record]] = {}
        self._vectors: dict[PodSpec, Vector] = {}

    def put_node(self, node: Node, now: float = 0.0) -> bool:
        """Add or update a node, and book the pods that wait for it.

        Args:
            node: as it is now.
            now: seconds since the epoch, by which measured loads are fresh or stale.

        Returns:
            Whether pods may fit on it that did not before.
        """
        old_row = self.columns.row_of.get(node.name)
        old = self.columns.nodes[old_row] if old_row is not None else None
        if old == node:
            return False  # a heartbeat
        if old_row is not None and old is not None:
            self._put_images(old_row, node.images)
            if msgspec.structs.replace(old, images=node.images) == node:
                self.columns.nodes[old_row] = node
                return False  # it pulled an image, or dropped one
        row = self.columns.put(node)
        if old is None:
            self._put_images(row, node.images)
        if node.loads or (old is not None and old.loads):
            self.loads.describe(row, gpus_of(node)[0], node.loads, node.agent_lease, now)
        self.devices.grow(0, self.columns.alive.size)
        self.pods.grow(self.columns.alive.size)
        self.zones.grow(0, self.columns.alive.size)
        if old is None:
            self._zone_books.describe(row, node.name)
        if old is None or gpus_of(old) != gpus_of(node):
            self._recount(row, node)
        self.loads.grow(*self.devices.model.shape)
        if homeless := self._homeless.pop(node.name, None):
            for record in homeless.values():
                self._book(record, row, ())
            self._recount(row, node)
        return True

    def remove_node(self, name: str) -> None:
        """Forget a node; pods that are on it are booked again if it comes back."""
        row = self.columns.row_of.get(name)
        if row is None:
            return
        for record in list(self.on_row.get(row, {}).values()):
            self._unbook(record)
            self._homeless.setdefault(name, {})[record.pod.uid] = record
        self._describe(row, ())
        self.loads.describe(row, (), (), "", 0.0)
        self._zone_books.vacate(row)
        self.columns.remove(name)
        self._put_images(row, ())
        self.objects.touch("Node")

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
        record.decided = bookings is not None
        self._charge(record)
        row = self.columns.row_of.get(node)
        if row is None:
            self._homeless.setdefault(node, {})[record.pod.uid] = record
            return
        if bookings is not None or record.pod.spec.gpu is None:
            self._book(record, row, bookings or ())
        elif (held := assigned(record.pod, row, self.devices)) is None:
            self._book(record, row, guess(record.pod, row, self.devices))
        else:
            self._book(record, row, held)
            if self.devices.overcommitted(row):  # perhaps a guess was wrong
                self._recount(row, self.columns.nodes[row])

    def holds(self, record: Record, node: str) -> bool:
        """Return whether just what the pod asks for is booked on this node (or will be)."""
        if record.state not in (State.ASSUMED, State.BOUND) or record.node != node:
            return False
        booked, spec = record.vector, record.pod.spec
        return booked is None or booked.spec is spec or booked.spec == spec

    def reassign(self, record: Record) -> bool:
        """Follow the pod's own word on its GPUs; returns whether it differed from the books."""
        if record.row < 0 or record.pod.spec.gpu is None:
            return False
        held = assigned(record.pod, record.row, self.devices)
        if held is None or set(held) == set(record.bookings):
            return False
        self._hold(record, record.row, record.bookings, sign=-1)
        self._hold(record, record.row, held)
        record.bookings = held
        self.columns.booked.add(record.row)
        return True

    def relabel(self, record: Record) -> bool:
        """Follow what selectors see of a booked pod; returns whether it changed."""
        old, pod = record.indexed, record.pod
        if record.row < 0 or (
            (old.labels, old.deleting) == (pod.labels, pod.deleting)
            and old.spec.pod_affinity == pod.spec.pod_affinity
        ):
            return False
        self.pods.add(record.row, old, sign=-1)
        self.pods.add(record.row, pod)
        record.indexed = pod
        self.columns.booked.add(record.row)
        return True

    @contextmanager
    def without(self, records: Iterable[Record]) -> Iterator[None]:
        """Take booked pods off their rows for a while, to see what would fit without them."""
        held = [(r, r.row, r.bookings) for r in records]
        for record, _, _ in held:
            self._unbook(record)
        try:
            yield
        finally:
            for record, row, bookings in sorted(held, key=lambda h: h[0].placed_at):
                self._book(record, row, bookings)

    def count_usage(self) -> None:
        """Count from now on what each namespace holds."""
        held = [r for r in self.records.values() if r.state in (State.ASSUMED, State.BOUND)]
        for record in held:
            record.charged = record.pod.spec
        self.usage.start((r.pod.namespace, r.pod.spec) for r in held)

    def release(self, record: Record, state: State) -> None:
        """Give back all that is booked for the pod."""
        if record.row >= 0:
            row = record.row
            self._unbook(record)
            self._zone_books.forget(row, record.pod.uid)
        elif homeless := self._homeless.get(record.node):
            homeless.pop(record.pod.uid, None)
            if not homeless:
                del self._homeless[record.node]
        record.node = ""
        record.claims = ()
        record.state = state
        self._refund(record)

    def lift(self, record: Record) -> RemovedBooking:
        """Take a booked pod off its row for a moment; `put_back` must follow."""
        lifted = RemovedBooking(record.row, record.bookings)
        self._unbook(record)
        return lifted

    def put_back(self, record: Record, lifted: RemovedBooking) -> None:
        """Book a lifted pod where it was."""
        self._book(record, lifted.row, lifted.bookings)

    def overcommitted(self, row: int) -> bool:
        """Return whether more is booked on the row than it has, of anything."""
        return self._excess(row) > 0

    def to_relieve(
        self, row: int, candidates: Iterable[Record], going: Iterable[Record]
    ) -> list[Record]:
        """Return the first candidates whose leaving ends the row's over-commitment.

        Args:
            row: of a node.
            candidates: pods booked there; one whose leaving would not help is passed over.
            going: pods booked there that leave anyway.
        """
        chosen: list[Record] = []
        undone: list[tuple[Record, tuple[Booking, ...]]] = []
        for record in going:
            undone.append((record, record.bookings))
            self._unbook(record)
        excess = self._excess(row)
        for record in candidates:
            if excess <= 0:
                break
            undone.append((record, record.bookings))
            self._unbook(record)
            before, excess = excess, self._excess(row)
            if excess < before:
                chosen.append(record)
        for record, held in reversed(undone):  # keeps the candidates' order among themselves
            self._book(record, row, held)
        return chosen

    def _charge(self, record: Record) -> None:
        if record.pod.time_limit:
            self.limited.add(record.pod.uid)
        if self.usage.counting:
            record.charged = record.pod.spec
            self.usage.add(record.pod.namespace, record.charged)

    def _refund(self, record: Record) -> None:
        self.limited.discard(record.pod.uid)
        if record.charged is not None:
            self.usage.add(record.pod.namespace, record.charged, sign=-1)
            record.charged = None

    def _excess(self, row: int) -> float:
        free = self.columns.free[:, row]
        return float(-np.minimum(free, 0).sum()) + self.devices.excess(row)

    def _book(self, record: Record, row: int, bookings: tuple[Booking, ...]) -> None:
        vector = record.vector = self._vector(record.pod.spec)
        self.columns.book(row, vector.columns, vector.amounts, vector.scored)
        if bookings:
            self._hold(record, row, bookings)
            self._expect(record, row, bookings)
        record.row = row
        record.bookings = bookings
        record.indexed = record.pod
        self.pods.add(row, record.pod, expected=record.expected)
        if vector.spec.volumes:
            self._count_volumes(record, row, vector.spec)
        if vector.spec.ports:
            self.ports.add(row, vector.spec.ports)
        self.on_row.setdefault(row, {})[record.pod.uid] = record
        if self.zones.any:
            self._zone_books.came(row, record)

    def _unbook(self, record: Record) -> None:
        vector = record.vector
        assert vector is not None  # it is booked
        cpu, memory = vector.scored
        self.columns.book(record.row, vector.columns, -vector.amounts, (-cpu, -memory))
        if record.bookings:
            self._hold(record, record.row, record.bookings, sign=-1)
            self.loads.forget(record.pod.uid)
        self.pods.add(record.row, record.indexed, sign=-1, expected=record.expected)
        if vector.spec.ports:
            self.ports.add(record.row, vector.spec.ports, sign=-1)
        if vector.spec.volumes:
            self._count_volumes(record, record.row, vector.spec, sign=-1)
        del self.on_row[record.row][record.pod.uid]
        if self.zones.any:
            self._zone_books.left(record.row, record)
        record.row = -1
        record.vector = None
        record.bookings = ()

    def _hold(self, record: Record, row: int, held: tuple[Booking, ...], sign: int = 1) -> None:
        assert record.vector is not None  # what was booked counts, whatever the pod says since
        self.devices.book(row, held, sign)
        self.neighbours.book(row, record.vector.spec.workload, held, sign)

    def _count_volumes(self, record: Record, row: int, spec: PodSpec, sign: int = 1) -> None:
        namespace = record.pod.namespace
        self.volumes.add(row, record.node, namespace, spec.volumes, record.claims, sign)

    def _expect(self, record: Record, row: int, bookings: tuple[Booking, ...]) -> None:
        spec = record.pod.spec
        if spec.expected_util or spec.expected_memory_mib:
            self.loads.expect(
                record.pod.uid,
                row,
                [b.slot for b in bookings],
                spec.expected_util,
                spec.expected_memory_mib,
                record.placed_at,
            )

    def _recount(self, row: int, node: Node | None) -> None:
        """Describe the row's GPUs anew and book what is held of them.

        First what pods say themselves or what was decided here, then the guesses about the others.
        """
        before = self.devices.gpus[row]
        gpus, factor = gpus_of(node) if node else ((), 1.0)
        self._describe(row, gpus, factor)
        guesses = []
        for record in self.on_row.get(row, {}).values():
            held = assigned(record.pod, row, self.devices)
            if held is None and record.decided:
                held = carried_over(record.bookings, before, gpus)
            if held is None:
                guesses.append(record)
            else:
                record.bookings = held
                self._hold(record, row, held)
        for record in guesses:
            record.decided = False
            record.bookings = guess(record.pod, row, self.devices)
            self._hold(record, row, record.bookings)
        self.columns.booked.add(row)

    def _describe(self, row: int, gpus: Sequence[Gpu], factor: float = 1.0) -> None:
        before = list(self.devices.there)
        self.devices.describe(row, gpus, factor)
        self.neighbours.forget(row)
        if self.devices.there != before:
            self.columns.schema += 1  # prices depend on how many GPUs there are of which kind

    def _put_images(self, row: int, images: tuple[Image, ...]) -> None:
        for name in self.images.put(row, images):
            self.objects.touch(image_kind(name))

    def _vector(self, spec: PodSpec) -> Vector:
        vector = self._vectors.get(spec)
        if vector is None:
            if len(self._vectors) >= _VECTORS_KEPT:
                self._vectors.clear()
            vector = self._vectors[spec] = Vector(spec, self.columns)
        return vector
