"""NodeVolumeLimits: how many volumes of each CSI driver a node can attach.

Source of semantics: `pkg/scheduler/framework/plugins/nodevolumelimits` (csi.go).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from alnair.model.volumes import (
    CSI_DRIVERS,
    Attachment,
    Disk,
    StorageNode,
    csi_handle,
)
from alnair.model.workload import PodSpec, PodVolume
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.framework.refuse_all import RefuseAll
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows
from alnair.scheduler.state.objects.api_objects import Objects, Read
from alnair.scheduler.state.objects.storage_objects import (
    ATTACHMENTS,
    CSI_NODES,
    find_claim,
    find_class,
    find_volume,
    foreign,
    is_claim,
    reads,
)

TOO_MANY = Reason("node(s) exceed max volume count")


class NodeVolumeLimits:
    """Filters by the number of attached volumes."""

    name = "NodeVolumeLimits"

    def reads(self, spec: PodSpec, objects: Objects) -> Sequence[Read]:
        """Return the claims of the pod, and what nodes have and can have attached."""
        if not spec.volumes:
            return ()
        return (*reads(spec, objects), (CSI_NODES, None), (ATTACHMENTS, None))

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Limits | RefuseAll | None":
        """Compile the filter."""
        objects = cluster.objects
        disks = set()
        for volume in spec.volumes:
            if is_claim(volume):
                if not volume.name:
                    text = "PersistentVolumeClaim had no name"
                    return RefuseAll(text, cluster.columns, error=True)
                claim = find_claim(spec.namespace, volume.name, objects)
                if claim is None:
                    where = f"{spec.namespace}/{volume.name}"
                    text = (
                        f'looking up PVC {where}: persistentvolumeclaims "{volume.name}" not found'
                    )
                    return RefuseAll(text, cluster.columns)
                if text := foreign(volume, claim):
                    return RefuseAll(text, cluster.columns, error=True)
            if disk := _disk(spec.namespace, volume, objects):
                disks.add(disk)
        return _Limits(disks, cluster) if disks else None


class _Limits:
    depends = Depends.BOOKED

    def __init__(self, disks: set[Disk], cluster: Cluster) -> None:
        self._disks = disks
        self._columns = cluster.columns
        self._volumes = cluster.volumes
        self._objects = cluster.objects
        self._nodes: Mapping[tuple[str, str], StorageNode] = cluster.objects.of(CSI_NODES)
        self._attachments = cluster.volumes.answer(
            ATTACHMENTS,
            cluster.objects.version(ATTACHMENTS),
            lambda: _by_node(cluster.objects.of(ATTACHMENTS).values()),
        )
        self._epoch = -1
        self._room: Column = np.zeros(0)

    def __call__(self, rows: Rows) -> Mask:
        if self._epoch != self._columns.epoch:
            self._epoch = self._columns.epoch
            self._room = self._least_room()
        room = self._room[rows]
        ok = np.ones(room.size, bool)
        numbers = np.arange(self._room.size)[rows]
        held = np.zeros(self._room.size)
        known = self._volumes.distinct[: held.size]
        held[: known.size] = known
        # Counting is dear; most nodes have room for more than they could have in use.
        for i in np.flatnonzero(held[rows] > room):
            ok[i] = self._fits(int(numbers[i]))
        return ok

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield TOO_MANY, ~self(rows)

    def _least_room(self) -> Column:
        """Return, per row, how many volumes pods may have there before it is worth counting."""
        drivers = frozenset(disk.driver for disk in self._disks)
        objects, columns = self._objects, self._columns
        version = (objects.version(CSI_NODES), objects.version(ATTACHMENTS), columns.epoch)
        room = self._volumes.answer(drivers, version, lambda: self._room_of(drivers))
        return room - len(self._disks)

    def _room_of(self, drivers: frozenset[str]) -> Column:
        room = np.full(self._columns.alive.size, np.inf)
        for (_, name), node in self._nodes.items():
            row = self._columns.row_of.get(name)
            limits = [limit for driver, limit in node.limits if driver in drivers]
            if row is not None and limits:
                room[row] = min(limits) - len(self._attachments.get(name, ()))
        return room

    def _fits(self, row: int) -> bool:
        name = self._columns.nodes[row]
        node = self._nodes.get(("", name.name)) if name else None
        if node is None:
            return True
        used = set(self._in_use(row))
        count = Counter(disk.driver for disk in used | set(self._attached(node.name)))
        more = Counter(disk.driver for disk in self._disks - used)
        return all(
            count[driver] + more[driver] <= limit for driver, limit in node.limits if more[driver]
        )

    def _in_use(self, row: int) -> Iterator[Disk]:
        for namespace, volume in self._volumes.on_row(row):
            if disk := _disk(namespace, volume, self._objects):
                yield disk

    def _attached(self, node: str) -> Iterator[Disk]:
        for attachment in self._attachments.get(node, ()):
            found = find_volume(attachment.volume, self._objects)
            if found and found.disk and found.disk.driver not in CSI_DRIVERS:
                yield Disk(attachment.driver, found.disk.handle)


def _disk(namespace: str, volume: PodVolume, objects: Objects) -> Disk | None:
    """Return the disk of a volume by its CSI driver; None if none serves it, or it is not known."""
    if not is_claim(volume):
        return _by_driver(Disk(volume.kind, csi_handle(volume.kind, volume.name)))
    claim = find_claim(namespace, volume.name, objects)
    if claim is None or foreign(volume, claim):
        return None
    if claim.volume and (found := find_volume(claim.volume, objects)):
        return _by_driver(found.disk) if found.disk else None
    storage_class = find_class(claim.storage_class, objects)
    if storage_class is None:
        return None
    # No disk has this name yet, and no other claim will have the same disk.
    return _by_driver(Disk(storage_class.provisioner, f"of {namespace}/{claim.name}"))


def _by_driver(disk: Disk) -> Disk:
    # On every node that has a CSINode, CSI drivers serve the disks of in-tree plugins.
    return Disk(CSI_DRIVERS.get(disk.driver, disk.driver), disk.handle)


def _by_node(attachments: Iterable[Attachment]) -> dict[str, list[Attachment]]:
    found: defaultdict[str, list[Attachment]] = defaultdict(list)
    for attachment in attachments:
        if attachment.driver and attachment.volume:
            found[attachment.node].append(attachment)
    return dict(found)
