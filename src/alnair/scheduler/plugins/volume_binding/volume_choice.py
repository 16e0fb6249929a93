"""Storage for claims that wait for a node: a persistent volume that exists, or one to be made.

Source of semantics: `FindMatchingVolume` of `component-helpers/storage/volume`, and
`checkVolumeProvisions` of the VolumeBinding plugin.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.model.volumes import (
    ClaimBinding,
    ClaimKey,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageCapacity,
    StorageDriver,
)
from alnair.scheduler.plugins.volume_binding.volume_node_affinity import Reach
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask
from alnair.scheduler.state.objects.api_objects import Objects
from alnair.scheduler.state.objects.storage_objects import CAPACITIES, DRIVERS, VOLUMES, find_class
from alnair.scheduler.state.pods.label_selectors import matches

#: The provisioner of classes whose volumes people make.
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_NONE: Final = -1


class Offer:
    """What each row has to offer; the arrays have the shape (rows,).

    Attributes:
        no_volume: no volume fits, and none can be made there.
        no_space: a volume could be made, but there is too little storage.
        chosen: for each claim, the index of its volume, -1 where one is to be made.
    """

    def __init__(self, size: int) -> None:
        self.no_volume: Mask = np.zeros(size, bool)
        self.no_space: Mask = np.zeros(size, bool)
        self.chosen: list[NDArray[np.intp]] = []


class Storage:
    """Storage for the unbound claims of a pod, with the API objects as they are.

    Smaller claims choose first, each the smallest volume that will do.
    """

    def __init__(self, claims: Sequence[PersistentVolumeClaim], cluster: Cluster) -> None:
        self._cluster = cluster
        self._claims = sorted(claims, key=lambda claim: claim.size)
        free_volumes = cluster.volumes.answer(
            VOLUMES, cluster.objects.version(VOLUMES), lambda: _FreeVolumes(cluster.objects)
        )
        fitting = [free_volumes.fitting(claim) for claim in self._claims]
        self._volumes = list(
            {volume.name: volume for found in fitting for volume in found}.values()
        )
        index = {volume.name: i for i, volume in enumerate(self._volumes)}
        self._fitting = [[index[volume.name] for volume in found] for found in fitting]
        self._version: object = None
        self._offer = Offer(0)

    def offer(self) -> Offer:
        """Return what there is now, less what is promised to the claims of placed pods."""
        columns = self._cluster.columns
        version = (self._cluster.volumes.version, columns.nodes_changed.end, columns.epoch)
        if version != self._version:
            self._version = version
            self._offer = self._look()
        return self._offer

    def bindings(self, row: int) -> tuple[ClaimBinding, ...]:
        """Return what to write so that the claims get their storage on this row."""
        bindings = []
        for claim, chosen in zip(self._claims, self.offer().chosen, strict=True):
            index = int(chosen[row])
            volume = "" if index == _NONE else self._volumes[index].name
            bindings.append(ClaimBinding(claim.namespace, claim.name, claim.uid, volume))
        return tuple(bindings)

    def _look(self) -> Offer:
        offer = Offer(self._cluster.columns.alive.size)
        waiting: list[tuple[PersistentVolumeClaim, Mask]] = []
        for claim, fitting in zip(self._claims, self._fitting, strict=True):
            node = claim.selected_node or self._cluster.volumes.provisioned_for(_key(claim))
            if node:
                # It was decided before; the provisioner takes the choice back if it cannot be.
                chosen = np.full(offer.no_volume.size, _NONE, np.intp)
                row = self._cluster.columns.row_of.get(node)
                elsewhere = np.ones(offer.no_volume.size, bool)
                if row is not None:
                    elsewhere[row] = False
                offer.no_volume |= elsewhere
                waiting.insert(0, (claim, ~elsewhere))
            else:
                chosen = self._choose(claim, fitting, offer.chosen)
                waiting.append((claim, chosen == _NONE))
            offer.chosen.append(chosen)
        for claim, where in waiting:
            if where.any():
                self._provision(claim, where & ~offer.no_volume & ~offer.no_space, offer)
        return offer

    def _choose(
        self, claim: PersistentVolumeClaim, fitting: list[int], taken: list[NDArray[np.intp]]
    ) -> NDArray[np.intp]:
        """Return, per row, the smallest volume that is free for the claim there."""
        size = self._cluster.columns.alive.size
        chosen = np.full(size, _NONE, np.intp)
        promised = self._cluster.volumes.promised_to
        reached = reach(self._cluster)
        for index in fitting:
            volume = self._volumes[index]
            owner = volume.claim or promised(volume.name)
            if owner is not None and owner != _key(claim):
                continue
            rows = np.arange(size) if volume.nodes is None else reached.rows(volume.nodes)
            if owner is not None:
                chosen[:] = _NONE
                chosen[rows] = index  # it is promised to this claim: no other will do
                return chosen
            rows = rows[chosen[rows] == _NONE]
            for other in taken:
                rows = rows[other[rows] != index]
            chosen[rows] = index
        return chosen

    def _provision(self, claim: PersistentVolumeClaim, where: Mask, offer: Offer) -> None:
        """Note on which of these rows no volume can be made for the claim."""
        found = find_class(claim.storage_class, self._cluster.objects)
        if found is None or found.provisioner in ("", _NO_PROVISIONER):
            offer.no_volume |= where
            return
        possible = reach(self._cluster).mask(found.topologies or None)
        offer.no_volume |= where & ~possible
        offer.no_space |= where & possible & ~self._roomy(claim, found.provisioner)

    def _roomy(self, claim: PersistentVolumeClaim, provisioner: str) -> Mask:
        """Return which rows have enough storage, if the driver says how much there is."""
        objects = self._cluster.objects
        driver: StorageDriver | None = objects.of(DRIVERS).get(("", provisioner))
        if driver is None or not driver.checks_capacity or not claim.size:
            return np.ones(self._cluster.columns.alive.size, bool)
        roomy = np.zeros(self._cluster.columns.alive.size, bool)
        capacity: StorageCapacity
        for capacity in objects.of(CAPACITIES).values():
            if (
                capacity.storage_class == claim.storage_class
                and capacity.largest >= claim.size
                and capacity.nodes is not None
            ):
                roomy |= reach(self._cluster).selected(capacity.nodes)
        return roomy


class _FreeVolumes:
    """Persistent volumes that are not in use: by class, smallest first, and by claim."""

    def __init__(self, objects: Objects) -> None:
        self._free: defaultdict[str, list[PersistentVolume]] = defaultdict(list)
        self._set_aside: defaultdict[ClaimKey, list[PersistentVolume]] = defaultdict(list)
        volumes: Iterable[PersistentVolume] = objects.of(VOLUMES).values()
        for volume in sorted(volumes, key=lambda v: (v.size, v.name)):
            if volume.deleting:
                continue
            if volume.claim is not None:  # by people, or by a scheduler
                self._set_aside[volume.claim].append(volume)
            elif volume.available:
                self._free[volume.storage_class].append(volume)

    def fitting(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes that the claim could have, wherever they are."""
        own = [
            v
            for v in self._set_aside.get(_key(claim), ())
            if v.claim_uid in ("", claim.uid)
            and v.storage_class == claim.storage_class
            and _large_enough(claim, v)
        ]
        labels = claim.selector
        return own or [
            v
            for v in self._free.get(claim.storage_class, ())
            if _large_enough(claim, v)
            and set(claim.modes) <= set(v.modes)
            and (labels is None or matches(labels, dict(v.labels)))
        ]


def reach(cluster: Cluster) -> Reach:
    """Return who reaches what, with the nodes as they are now."""
    columns = cluster.columns
    version = (columns.nodes_changed.end, columns.epoch, columns.alive.size)
    return cluster.volumes.answer("reach", version, lambda: Reach(columns))


def _key(claim: PersistentVolumeClaim) -> ClaimKey:
    return claim.namespace, claim.name


def _large_enough(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return (
        volume.size >= claim.size
        and volume.block == claim.block
        and volume.attributes_class == claim.attributes_class
    )
