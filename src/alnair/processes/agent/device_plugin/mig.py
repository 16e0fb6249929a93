"""MIG devices: a resource for each profile, as NVIDIA's plugin has them in its strategy "mixed".

The ids are the devices' UUIDs, and the kubelet alone chooses among them, so whose they are need not
be known before a container starts. No library of ours is put into it: the driver holds it to what
it was given.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from alnair.node.inventory import GpuFacts, Inventory, MigDevice
from alnair.node.kubelet import checkpoint
from alnair.node.kubelet.cdi import KIND, CdiSpecs, Edits, StartedContainer, fresh_device
from alnair.node.kubelet.checkpoint import CheckpointError
from alnair.node.kubelet.plugin_server import PluginDevice, StartRefusedError
from alnair.node.load import GpuHolder
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.sharing.matching.node_state import Allocation

#: Seconds after which a pod is replaced whose device is not there: while a driver is replaced, or a
#: GPU is being cut up, it may come back.
_REPLACE_AFTER: Final = 30.0
#: MIG devices by UUID, each with its GPU.
Devices = Mapping[str, tuple[GpuFacts, MigDevice]]


class MigStarts:
    """Lets containers start with the MIG devices that the kubelet gave them.

    Args:
        specs: The files that say what containers get.
        folder: Of device plugins, with the kubelet's checkpoint.
        inventory: Says which devices there are.
        problems: Says why nothing may start on a GPU, by UUID.
        edits: Says what a container with these gets; raises OSError.
        owner: Says which pod has a uid.
        refused: Called with (pod, sentence, whether it is to be replaced).
    """

    def __init__(
        self,
        specs: CdiSpecs,
        folder: Path,
        inventory: Callable[[], Inventory],
        problems: Callable[[], Mapping[str, str]],
        edits: Callable[[Iterable[tuple[GpuFacts, MigDevice]]], Edits],
        owner: Callable[[str], OwningPod | None],
        refused: Callable[[OwningPod, str, bool], None],
    ) -> None:
        self._specs = specs
        self._folder = folder
        self._inventory = inventory
        self._problems = problems
        self._edits = edits
        self._owner = owner
        self._refused = refused
        #: Pod uid → names of CDI devices that have a file.
        self._started: dict[str, set[str]] = {}
        #: Pod uid → monotonic seconds of its first start for which a device was missing.
        self._missing: dict[str, float] = {}
        #: Pods whose replacement was asked for: the kubelet tries a start that failed again.
        self._replaced: set[str] = set()

    @property
    def devices(self) -> Devices:
        """All of the node, as they are now."""
        return self._inventory().mig_devices

    def problem(self, gpu: GpuFacts) -> str:
        """Say why nothing may start on a GPU, or ""."""
        return self._problems().get(gpu.uuid, "")

    def take_over(self) -> None:
        """Read what an agent before this one let start.

        Raises:
            OSError: The folder of CDI cannot be used.
        """
        for one in self._specs.load():
            if one.mig:
                self._started.setdefault(one.pod_uid, set()).add(one.device)

    def uids(self) -> set[str]:
        """Return the uids of the pods that were let start."""
        return set(self._started)

    def forget(self, pod_uid: str) -> None:
        """Take back what a pod's containers had; none of its processes is left."""
        self._replaced.discard(pod_uid)
        self._missing.pop(pod_uid, None)
        self._specs.remove(self._started.pop(pod_uid, ()))

    def held(self) -> dict[str, set[str]] | None:
        """Return the GPUs of each pod's MIG devices, by its uid, whoever gave them.

        None while it cannot be known.
        """
        devices = self.devices
        if not devices:
            return {}
        try:
            known = checkpoint.read(self._folder)
        except CheckpointError:
            return None
        found: dict[str, set[str]] = {}
        for one in known:
            if gpus := {devices[uuid][0].uuid for uuid in one.ids & devices.keys()}:
                found.setdefault(one.pod_uid, set()).update(gpus)
        return found

    def holders(self) -> list[GpuHolder]:
        """Return the containers with MIG devices, whoever gave them; none while nobody knows."""
        devices = self.devices
        if not devices:
            return []
        try:
            known = checkpoint.read(self._folder)
        except CheckpointError:
            return []
        return [
            GpuHolder(msgspec.structs.replace(pod, container=one.container), tuple(sorted(uuids)))
            for one in known
            if (uuids := one.ids & devices.keys()) and (pod := self._owner(one.pod_uid))
        ]

    async def start(self, resource: str, ids: frozenset[str]) -> None:
        """Let the container with these ids start.

        Raises:
            StartRefusedError: It may not; says why.
        """
        try:
            known = checkpoint.read(self._folder)
        except CheckpointError as error:
            raise StartRefusedError(str(error)) from error
        same = [one for one in known if one.resource == resource and one.ids == ids]
        if not same:
            raise StartRefusedError(
                f"the kubelet's checkpoint does not say whose {len(ids)} ids of {resource} are:"
                " the kubelet tries again"
            )
        devices = self.devices
        for one in [one for one in same if self._owner(one.pod_uid)] or same:
            # What another plugin gave, before ours took its place, is in what that answered.
            if not one.device.startswith(f"{KIND}="):
                continue
            self._check(one.pod_uid, ids, devices)
            try:
                self._write(one, self._edits(devices[uuid] for uuid in sorted(ids)))
            except OSError as error:
                raise StartRefusedError(f"the start cannot be prepared: {error}") from error

    def _check(self, pod_uid: str, ids: Iterable[str], devices: Devices) -> None:
        for uuid in sorted(ids):
            if uuid not in devices:
                since = self._missing.setdefault(pod_uid, time.monotonic())
                is_gone = time.monotonic() - since > _REPLACE_AFTER
                self._refuse(pod_uid, f"MIG device {uuid} is not there any more", replace=is_gone)
            gpu = devices[uuid][0]
            if why := self.problem(gpu):
                text = f"GPU {gpu.index} ({gpu.uuid}) of MIG device {uuid} is unhealthy: {why}"
                self._refuse(pod_uid, text, replace=True)
        self._missing.pop(pod_uid, None)

    def _refuse(self, pod_uid: str, problem: str, *, replace: bool) -> NoReturn:
        if pod := self._owner(pod_uid):
            is_first = replace and pod_uid not in self._replaced
            if is_first:
                self._replaced.add(pod_uid)
            self._refused(pod, problem, is_first)
        raise StartRefusedError(problem)

    def _write(self, given: Allocation, edits: Edits) -> None:
        pod = self._owner(given.pod_uid) or OwningPod()
        device = given.device.removeprefix(f"{KIND}=")
        ids = tuple(sorted(given.ids))
        self._specs.write(
            StartedContainer(
                given.pod_uid, pod.namespace, pod.name, given.container, (), device, mig=ids
            ),
            edits,
        )
        self._started.setdefault(given.pod_uid, set()).add(device)


class MigDevices:
    """One resource, such as `nvidia.com/mig-1g.10gb`.

    Args:
        resource: Its name.
        starts: Decides about starts, and knows all devices.
    """

    def __init__(self, resource: str, starts: MigStarts) -> None:
        self.resource = resource
        self._starts = starts

    def devices(self) -> Sequence[PluginDevice]:
        """Those of this profile, as healthy and as near as their GPUs."""
        return [
            PluginDevice(uuid, not self._starts.problem(gpu), gpu.numa)
            for uuid, (gpu, one) in self._starts.devices.items()
            if one.resource == self.resource
        ]

    def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        """Those of GPUs with the fewest left: a GPU without users can be cut up anew."""
        of_gpu = {uuid: gpu.index for uuid, (gpu, _) in self._starts.devices.items()}
        left = Counter(of_gpu.get(uuid) for uuid in available)

        def order(uuid: str) -> tuple[int, int, str]:
            gpu = of_gpu.get(uuid)
            return left[gpu], -1 if gpu is None else gpu, uuid

        return [*must, *sorted((uuid for uuid in available if uuid not in must), key=order)][:size]

    def allocate(self, ids: Sequence[str]) -> str:
        """Return a name that nobody had before; its file is written at the start."""
        del ids
        return fresh_device()

    async def start(self, ids: frozenset[str]) -> None:
        """Let the container with these ids start; raises StartRefusedError."""
        await self._starts.start(self.resource, ids)
