"""The kubelet's device manager, as in v1.36.3: pkg/kubelet/cm/devicemanager/manager.go.

Allocation happens at admission, without the pod's identity; what was allocated becomes known by the
checkpoint after all resources of a container have been. Sets are read in random order, as Go does.
"""

import random
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from alnair.model.gpu_demand import ContainerGpus
from alnair.sharing.matching.node_state import Allocation

Ids = frozenset[str]


class AdmissionError(Exception):
    """The pod is not admitted; its phase becomes Failed."""


class DevicePlugin(Protocol):
    """What the kubelet calls of a plugin."""

    def allocate(self, resource: str, ids: Ids) -> str: ...

    def preferred(
        self, resource: str, size: int, available: Collection[str], must: Collection[str]
    ) -> list[str]: ...


class Entry(NamedTuple):
    """Of `podDevices`: ids and the CDI name that the plugin answered."""

    ids: Ids
    device: str


class DeviceManager:
    """Devices of all plugins, and whose they are.

    `aligned` stands for a policy of the topology manager: a container's ids are of one NUMA node if
    one has enough of them. `numa` maps ids to theirs.
    """

    def __init__(
        self,
        rng: random.Random,
        plugins: Mapping[str, DevicePlugin],
        devices: Mapping[str, Collection[str]],
        numa: Mapping[str, int],
        *,
        aligned: bool,
    ) -> None:
        self.rng = rng
        self.plugins = plugins
        self.devices = devices
        self.numa = numa
        self.aligned = aligned
        self.pod_devices: dict[str, dict[str, dict[str, Entry]]] = {}
        self.allocated: dict[str, set[str]] = {}
        self.checkpoint: tuple[Allocation, ...] = ()
        self.checkpoint_before: tuple[Allocation, ...] = ()
        self.healthy: dict[str, set[str]] = {}
        self.opts_known: set[str] = set()
        self.to_reuse: tuple[str, dict[str, set[str]]] = ("", {})
        self.sources_ready = True
        self.register()

    def register(self) -> None:
        """All plugins register and send their devices."""
        self.healthy = {resource: set(ids) for resource, ids in self.devices.items()}
        self.opts_known = set(self.devices)

    def restart(self) -> None:
        """What is in memory is lost; until plugins register again their options are not known."""
        self.pod_devices = {}
        for a in self.checkpoint:
            of_pod = self.pod_devices.setdefault(a.pod_uid, {})
            of_pod.setdefault(a.container, {})[a.resource] = Entry(a.ids, a.device)
        self._count()
        self.healthy = {resource: set() for resource in self.devices}
        self.opts_known = set()
        self.to_reuse = ("", {})

    def entry(self, uid: str, container: str, resource: str) -> Entry | None:
        return self.pod_devices.get(uid, {}).get(container, {}).get(resource)

    def free_ended(self, active: Collection[str]) -> None:
        """`UpdateAllocatedDevices`: ids of pods that are not active come free."""
        if not self.sources_ready:
            return
        for uid in self.pod_devices.keys() - active:
            del self.pod_devices[uid]
        self._count()

    def allocate(
        self, uid: str, container: ContainerGpus, active: Collection[str], running: Collection[str]
    ) -> None:
        """Allocate all devices of a container.

        Raises:
            AdmissionError: the pod cannot be admitted.
        """
        if self.to_reuse[0] != uid:
            self.to_reuse = (uid, {})
        reuse = self.to_reuse[1]
        self._allocate(uid, container, active, running)
        for resource, entry in self.pod_devices.get(uid, {}).get(container.name, {}).items():
            own = reuse.setdefault(resource, set())
            if container.init and not container.sidecar:
                own |= entry.ids
            else:
                own -= entry.ids

    def _allocate(
        self, uid: str, container: ContainerGpus, active: Collection[str], running: Collection[str]
    ) -> None:
        is_new = False
        resources = [r for r in container.resources if r in self.devices]
        self.rng.shuffle(resources)
        for number, resource in enumerate(resources):
            if not number:
                self.free_ended(active)
            needed = container.resources[resource]
            ids = self._to_allocate(uid, container.name, resource, needed, running)
            if not ids:
                continue
            is_new = True
            try:
                device = self.plugins[resource].allocate(resource, ids)
            except AdmissionError:
                self._count()
                raise
            of_pod = self.pod_devices.setdefault(uid, {})
            of_pod.setdefault(container.name, {})[resource] = Entry(ids, device)
        if is_new:
            self.checkpoint_before = self.checkpoint
            self.checkpoint = tuple(
                Allocation(pod, name, resource, entry.ids, entry.device)
                for pod, containers in self.pod_devices.items()
                for name, resources in containers.items()
                for resource, entry in resources.items()
            )

    def _to_allocate(
        self, uid: str, container: str, resource: str, needed: int, running: Collection[str]
    ) -> Ids:
        entry = self.entry(uid, container, resource)
        if entry and len(entry.ids) != needed:
            raise AdmissionError("changed request")
        if not self.sources_ready and container in running:
            return frozenset()
        healthy = self.healthy[resource]
        if not healthy:
            raise AdmissionError("no healthy devices present")
        if entry:
            return frozenset()
        found = set(self._some(self.to_reuse[1].get(resource, set()), needed))
        in_use = self.allocated.setdefault(resource, set())
        in_use |= found
        available = healthy - in_use
        missing = needed - len(found)
        if len(available) < missing:
            raise AdmissionError(f"requested number of devices unavailable for {resource}")
        if missing:
            aligned = self._near(available, missing)
            if missing < len(aligned):
                offered = aligned
            else:
                found |= set(self._some(aligned, missing))
                offered = available
            missing = needed - len(found)
            if missing:
                preferred = self.plugins[resource].preferred(
                    resource, needed, self._some(offered | found), self._some(found)
                )
                found |= set(self._some((set(preferred) & offered) - found, missing))
                found |= set(self._some(offered - found, needed - len(found)))
        in_use |= found
        return frozenset(found)

    def _near(self, available: set[str], needed: int) -> set[str]:
        if not self.aligned:
            return set()
        nodes: dict[int, set[str]] = {}
        for device in available & self.numa.keys():
            nodes.setdefault(self.numa[device], set()).add(device)
        enough = [ids for _, ids in sorted(nodes.items()) if len(ids) >= needed]
        return self.rng.choice(enough) if enough else set()

    def _some(self, ids: Collection[str], count: int | None = None) -> list[str]:
        chosen = sorted(ids)
        self.rng.shuffle(chosen)
        return chosen[:count]

    def _count(self) -> None:
        self.allocated = {}
        for containers in self.pod_devices.values():
            for resources in containers.values():
                for resource, entry in resources.items():
                    self.allocated.setdefault(resource, set()).update(entry.ids)
