"""VolumeBinding: nodes that reach the bound volumes, and storage for claims that wait for a node.

Source of semantics: `pkg/scheduler/framework/plugins/volumebinding` and
`component-helpers/storage/volume`.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from alnair.model.volumes import EPHEMERAL, ClaimBinding, PersistentVolumeClaim
from alnair.model.workload import PodSpec
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.framework.refuse_all import RefuseAll
from alnair.scheduler.plugins.volume_binding.volume_choice import Storage, reach
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows
from alnair.scheduler.state.objects.api_objects import Objects, Read
from alnair.scheduler.state.objects.storage_objects import (
    CAPACITIES,
    CLASSES,
    DRIVERS,
    VOLUMES,
    claim_volumes,
    find_claim,
    find_class,
    find_volume,
    foreign,
    reads,
)

OUT_OF_REACH = Reason("node(s) didn't match PersistentVolume's node affinity", unresolvable=True)
NO_VOLUME = Reason("node(s) didn't find available persistent volumes to bind", unresolvable=True)
NO_SPACE = Reason("node(s) did not have enough free storage", unresolvable=True)
GONE = Reason(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", unresolvable=True
)
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
#: What decides which storage a claim can get.
_STORAGE = (VOLUMES, CLASSES, DRIVERS, CAPACITIES)


class VolumeBindingArgs(Arguments, frozen=True):
    """Arguments: how long a placed pod waits for its storage."""

    bind_timeout_seconds: int = 600

    def problems(self) -> list[str]:
        """Return what is wrong."""
        if self.bind_timeout_seconds < 0:
            return [f"bindTimeoutSeconds: {self.bind_timeout_seconds} is negative: write 0 or more"]
        return []


class VolumeBinding:
    """Filters by the claims of a pod, and chooses storage for those that are not bound."""

    name = "VolumeBinding"
    Args = VolumeBindingArgs

    def __init__(self, args: VolumeBindingArgs | None = None) -> None:
        self.patience = float((args or VolumeBindingArgs()).bind_timeout_seconds)

    def reads(self, spec: PodSpec, objects: Objects) -> Sequence[Read]:
        """Return the claims of the pod, and all that one without a volume could get."""
        if not spec.volumes:
            return ()
        found = (find_claim(spec.namespace, v.name, objects) for v in claim_volumes(spec))
        waiting = any(claim is not None and not claim.volume for claim in found)
        return (*reads(spec, objects), *((kind, None) for kind in _STORAGE if waiting))

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Bound | _Unbound | RefuseAll | None":
        """Compile the filter."""
        objects = cluster.objects
        bound: list[PersistentVolumeClaim] = []
        unbound: list[PersistentVolumeClaim] = []
        immediate = False
        for volume in claim_volumes(spec):
            claim = find_claim(spec.namespace, volume.name, objects)
            text = _missing(volume.kind, volume.name) if claim is None else _unusable(claim)
            if claim is None or text or (text := foreign(volume, claim)):
                return RefuseAll(text, cluster.columns)
            if claim.bound:
                bound.append(claim)
            elif claim.volume or not _waits(claim, objects):
                immediate = True
            else:
                unbound.append(claim)
        if immediate:
            return RefuseAll(UNBOUND, cluster.columns)
        if unbound:
            return _Unbound(bound, _storage(unbound, cluster), cluster)
        return _Bound(bound, cluster) if bound else None

    def claims(self, spec: PodSpec, row: int, cluster: Cluster) -> tuple[ClaimBinding, ...]:
        """Return what to write for the claims that are not bound."""
        found = (find_claim(spec.namespace, v.name, cluster.objects) for v in claim_volumes(spec))
        unbound = [claim for claim in found if claim is not None and not claim.bound]
        return _storage(unbound, cluster).bindings(row) if unbound else ()


class _Bound:
    """The volumes of bound claims."""

    depends = Depends.NODE

    def __init__(self, claims: list[PersistentVolumeClaim], cluster: Cluster) -> None:
        self._cluster = cluster
        found = [find_volume(claim.volume, cluster.objects) for claim in claims]
        self._volumes = [volume for volume in found if volume is not None]
        self._gone = len(self._volumes) < len(found)

    def __call__(self, rows: Rows) -> Mask:
        ok = self.reached()[rows]
        return np.zeros_like(ok) if self._gone else ok

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        reached = self.reached()[rows]
        yield OUT_OF_REACH, ~reached
        if self._gone:
            yield GONE, reached

    def reached(self) -> Mask:
        """Return which of all rows reach the volumes."""
        ok = np.ones(self._cluster.columns.alive.size, bool)
        for volume in self._volumes:
            ok &= reach(self._cluster).mask(volume.nodes)
        return ok


class _Unbound:
    """Storage that is still to be found, beside bound volumes."""

    depends = Depends.PODS

    def __init__(
        self, bound: list[PersistentVolumeClaim], storage: Storage, cluster: Cluster
    ) -> None:
        self._bound = _Bound(bound, cluster)
        self._storage = storage
        self._cluster = cluster

    @property
    def version(self) -> int:
        return self._cluster.volumes.version + self._cluster.columns.nodes_changed.end

    def __call__(self, rows: Rows) -> Mask:
        offer = self._storage.offer()
        return self._bound(rows) & ~(offer.no_volume | offer.no_space)[rows]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield from self._bound.reasons(rows)
        offer = self._storage.offer()
        yield NO_VOLUME, offer.no_volume[rows]
        yield NO_SPACE, offer.no_space[rows]


def _storage(unbound: list[PersistentVolumeClaim], cluster: Cluster) -> Storage:
    """Return what there is for the claims; the filter and the reservation ask the same one."""
    versions = tuple(cluster.objects.version(kind) for kind in _STORAGE)
    return cluster.volumes.answer(tuple(unbound), versions, lambda: Storage(unbound, cluster))


def _missing(kind: str, name: str) -> str:
    if kind == EPHEMERAL:
        return (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    return f'persistentvolumeclaim "{name}" not found'


def _unusable(claim: PersistentVolumeClaim) -> str:
    if claim.lost:
        return (
            f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume '
            f'"{claim.volume}"'
        )
    return f'persistentvolumeclaim "{claim.name}" is being deleted' if claim.deleting else ""


def _waits(claim: PersistentVolumeClaim, objects: Objects) -> bool:
    """Return whether the claim is bound only when its pod has a node."""
    found = find_class(claim.storage_class, objects)
    return found is not None and found.binding_mode == "WaitForFirstConsumer"
