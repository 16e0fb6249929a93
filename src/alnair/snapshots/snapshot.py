"""Snapshots: all that a decision depends on, in one file, to decide again somewhere else.

A file is gzip'd JSON with a version. It holds what the engine knows, which is what scheduling
needs of nodes, pods, PodGroups and further objects: no containers, environments, commands, or
secrets. Names, labels and requests are in it.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any, Final

import msgspec

from alnair.kube.objects.watched_kinds import object_types
from alnair.model.nodes import Node
from alnair.model.workload import Gang, Pod
from alnair.scheduler.engine import events
from alnair.scheduler.engine.view import View
from alnair.scheduler.framework import observers
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.queue.unit import Place, Unit
from alnair.scheduler.state.accounts import Record, State
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.gpu_assignment import assign

FORMAT: Final = "alnair-scheduler-snapshot"
VERSION: Final = 1


class SnapshotError(Exception):
    """A file that is no snapshot, or one that this version cannot read; says what to do."""


class SavedObject(msgspec.Struct, frozen=True):
    """A further API object; `value` is as the engine has it, by its kind."""

    kind: str
    namespace: str
    name: str
    value: Any


class Queued(msgspec.Struct, frozen=True, omit_defaults=True):
    """A unit of the queue: a lone pod by its uid, or a gang. For people: a replay tries all."""

    unit: str
    place: str
    pods: int
    attempts: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision depends on.

    Attributes:
        format, version: tell the file.
        alnair: version of the program that wrote it.
        time: seconds since the epoch.
        seed: of the engine.
        profiles: spelled out, as `ProfileConfiguration` of the command's configuration has them.
        pods: those on nodes (also those whose Binding was on the way, with what was chosen for
            them), then those that wait, in the order of the queue.
        plugins: by plugin name, what it has learned, also of pods that are gone; a plugin that is
            not in it starts with what the pods of the file say.
    """

    format: str = FORMAT
    version: int = VERSION
    alnair: str = ""
    time: float
    seed: int
    profiles: tuple[Any, ...]
    nodes: tuple[Node, ...]
    gangs: tuple[Gang, ...]
    pods: tuple[Pod, ...]
    objects: tuple[SavedObject, ...] = ()
    queue: tuple[Queued, ...] = ()
    plugins: dict[str, Any] = {}


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


class _Former(msgspec.Struct):
    """What plugins had learned, in files from before it stood under their names."""

    mix: Any = None
    bids: Any = None


def take(view: View, profiles: tuple[Any, ...], seed: int, now: float) -> Snapshot:
    """Return what the engine knows; all of it is values, so the engine may go on at once."""
    cluster = view.cluster
    units = sorted(view.units(), key=lambda unit: unit.order)
    order = {uid: unit.order for unit in units for uid in unit.pods}
    records = sorted(
        view.pods.values(),
        key=lambda r: (r.state is State.PENDING, order.get(r.pod.uid, -1)),
    )
    objects = cluster.objects
    return Snapshot(
        alnair=version("alnair"),
        time=now,
        seed=seed,
        profiles=profiles,
        nodes=tuple(node for node in cluster.columns.nodes if node is not None),
        gangs=tuple(state.gang for state in view.gangs() if state.gang is not None),
        pods=tuple(_pod(record, cluster) for record in records),
        objects=tuple(
            SavedObject(kind, namespace, name, value)
            for kind in objects.kinds()
            for (namespace, name), value in objects.of(kind).items()
        ),
        queue=tuple(
            Queued(unit.key, _place(unit), len(unit.pods), unit.attempts)
            for unit in units
            if unit.pods
        ),
        plugins=view.plugin_states(),
    )


def _pod(record: Record, cluster: Cluster) -> Pod:
    """Return the pod as the API server has it once its Binding has arrived.

    That the Binding was accepted is known before the pod is seen on its node.
    """
    pod = record.pod
    if pod.node or record.state not in (State.ASSUMED, State.BOUND):
        return pod
    assignment = pod.assignment
    if pod.spec.gpu is not None and record.row >= 0 and record.bookings:
        assignment = assign(pod.spec.gpu, record.bookings, cluster.devices.gpus[record.row])
    return msgspec.structs.replace(
        pod, node=record.node, bound_at=record.placed_at, assignment=assignment
    )


def _place(unit: Unit) -> str:
    # Part of the file's format, so it does not follow the name in the code.
    return "nowhere" if unit.place is Place.NOT_QUEUED else unit.place.name.lower()


def replay_events(snapshot: Snapshot) -> Iterator[events.Event]:
    """Return the events after which an engine knows the same."""
    for node in snapshot.nodes:
        yield events.NodeChanged(node)
    for one in snapshot.objects:
        yield events.ObjectChanged(one.kind, one.namespace, one.name, one.value)
    for gang in snapshot.gangs:
        yield events.GangChanged(gang)
    for pod in snapshot.pods:
        yield events.PodChanged(pod)
    if snapshot.plugins:
        yield events.PluginStates(snapshot.plugins)


def encode(snapshot: Snapshot) -> bytes:
    """Return the file; the same snapshot gives the same bytes."""
    return gzip.compress(msgspec.json.encode(snapshot), mtime=0)


def decode(data: bytes) -> Snapshot:
    """Return what a file holds.

    Raises:
        SnapshotError: It is none, or of another version.
    """
    try:
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        head = msgspec.json.decode(text, type=_Head)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise SnapshotError(
            "is no snapshot of a scheduler: save one with 'alnair scheduler snapshot'"
        ) from error
    if head.format != FORMAT:
        raise SnapshotError(
            "is no snapshot of a scheduler: save one with 'alnair scheduler snapshot'"
        )
    if head.version != VERSION:
        raise SnapshotError(
            f"is a snapshot of version {head.version}, and this program reads version {VERSION}:"
            " use the version of alnair that wrote it, or save a new one"
        )
    try:
        snapshot = msgspec.json.decode(text, type=Snapshot)
        former = msgspec.json.decode(text, type=_Former)
        types = object_types()
        objects = tuple(
            msgspec.structs.replace(one, value=msgspec.convert(one.value, types[one.kind]))
            for one in snapshot.objects
        )
    except (msgspec.DecodeError, KeyError) as error:
        raise SnapshotError(f"is a damaged snapshot: {error}; save a new one") from error
    entries = {name: value for name, value in msgspec.structs.asdict(former).items() if value}
    return msgspec.structs.replace(snapshot, objects=objects, plugins=entries | snapshot.plugins)


def check_plugins(snapshot: Snapshot, profiles: Iterable[Profile], source: str) -> None:
    """Check that the plugins of profiles can go on from what the snapshot says of them.

    Raises:
        SnapshotError: One cannot.
    """
    try:
        observers.check(profiles, snapshot.plugins)
    except observers.StateError as error:
        raise SnapshotError(f"{source} is a damaged snapshot: {error}; save a new one") from error
