"""Everything of the device plugin, joined: made with an API server and a kubelet."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.resources import PODS, Manifest
from alnair.model import names
from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.node.gpu_driver import GpuDriver
from alnair.node.health import GpusHealth
from alnair.node.inventory import GpuFacts, MigDevice
from alnair.node.isolation import Isolation
from alnair.node.kubelet import checkpoint, container_edits, driver_files
from alnair.node.kubelet.cdi import CdiSpecs, Edits
from alnair.node.kubelet.checkpoint import CheckpointError
from alnair.node.kubelet.driver_files import DriverError, DriverFiles
from alnair.node.kubelet.pod_resources import PodResources
from alnair.node.load import GpuHolder
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.node.vgpu.installed_library import Installed
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.closing import Coming
from alnair.processes.agent.device_plugin.early import EarlyPlugins
from alnair.processes.agent.device_plugin.leaving import LeavingPods
from alnair.processes.agent.device_plugin.mig import MigDevices, MigStarts
from alnair.processes.agent.device_plugin.plugins import Slots, WholeGpus
from alnair.processes.agent.device_plugin.pods_on_node import PodsOnNode
from alnair.processes.agent.device_plugin.starts import Starts
from alnair.processes.agent.node_facts import product
from alnair.processes.agent.numa_report import NumaReports
from alnair.processes.agent.settings import PluginSettings
from alnair.processes.agent.zone_use import KubeletZoneUse
from alnair.sharing.matching.node_state import NodeGpu, PodOnNode

#: Seconds between looks at whether devices changed.
_LOOK: Final = 0.5

#: Owns the assignments that are chosen here.
_MANAGER: Final = "alnair-agent-plugin"
_NO_MPS: Final = (
    f"annotation {names.VGPU_ISOLATION} asks for MPS, which this node's agent does not run (--mps)"
)


class Plugins:
    """Serves GPUs and slices to the kubelet while it runs.

    Args:
        settings: How.
        early: Has the sockets, and is told of the plugins at once.
        client: An open client.
        server: Has the slices.
        driver: NVML.
        library: The interposer, as it is mounted into containers.
        refused: Called with (pod, sentence, whether it is to be replaced).
        health: Of the GPUs: on those that are not healthy nothing starts.
        isolation: Has the MPS daemon, if there is one.

    Attributes:
        servers: One for each resource. Those of MIG devices come with the first device of a
            profile, and stay: the kubelet is told when there are none.
    """

    def __init__(
        self,
        settings: PluginSettings,
        early: EarlyPlugins,
        client: Client,
        server: VgpuServer,
        driver: GpuDriver,
        library: Installed,
        refused: Callable[[OwningPod, str, bool], None],
        health: GpusHealth,
        isolation: Isolation,
    ) -> None:
        self._settings = settings
        self._early = early
        self._client = client
        self._server = server
        self._driver = driver
        self._library = library
        self._health = health
        self._isolation = isolation
        folder = self._folder = settings.kubelet / "device-plugins"
        self._resources = PodResources(settings.kubelet / "pod-resources" / "kubelet.sock")
        self.starts = Starts(
            server,
            CdiSpecs(),
            self,
            self._resources,
            folder,
            self.gpus,
            self,
            refused,
            aligned=settings.alignment.insists,
        )
        self._leaving = LeavingPods(server.proc, self._forget)
        self.pods = PodsOnNode(client, settings.node, lambda uid: self._leaving.add([uid]))
        self.starts.pods = self.pods
        self.mig = MigStarts(
            CdiSpecs(),
            folder,
            lambda: driver.inventory,
            lambda: health.unhealthy,
            self._mig_edits,
            self.pods.owner,
            refused,
        )
        self._plugins = (
            WholeGpus(self.starts, self.gpus, folder, self._listed),
            Slots(self.starts, self.gpus),
        )
        self.servers = early.servers

        def problems() -> Mapping[str, str]:
            return health.unhealthy

        self._zones = NumaReports(
            client,
            settings.node,
            driver,
            KubeletZoneUse(self._resources, lambda: driver.inventory, problems),
            alignment=settings.alignment,
            problems=problems,
        )

    async def run(self) -> None:
        """Serve, until cancelled.

        Raises:
            OSError: The folder of CDI cannot be used.
        """
        self.starts.take_over()
        self.mig.take_over()
        self._come()
        async with self._resources, asyncio.TaskGroup() as group:
            group.create_task(self._early.run())
            group.create_task(self.pods.run())
            group.create_task(self._leaving.run())
            group.create_task(self._forget_gone())
            group.create_task(self._tell_changes())
            group.create_task(self._zones.run())

    def gpus(self) -> Sequence[NodeGpu]:
        """The GPUs of the node, as they are now."""
        return [
            NodeGpu(
                gpu.uuid,
                gpu.index,
                gpu.memory_mib,
                gpu.numa,
                product(gpu.model),
                problem=self._health.unhealthy.get(gpu.uuid, ""),
                may_be_sliced=not gpu.mig,
            )
            for gpu in self._driver.inventory.gpus
        ]

    def holders(self) -> list[GpuHolder]:
        """The containers with whole GPUs: those that were let start, and those of other plugins."""
        theirs = [
            GpuHolder(msgspec.structs.replace(owner, container=name), tuple(p.uuid for p in parts))
            for uid, containers in (self.starts.others() or {}).items()
            if (owner := self.pods.owner(uid)) is not None
            for name, parts in containers.items()
        ]
        return theirs + [
            GpuHolder(OwningPod(one.namespace, one.pod, uid, one.container), uuids)
            for uid, containers in self.starts.started.items()
            for one in containers.values()
            if (uuids := tuple(part.uuid for part in one.parts if part.whole))
        ]

    def coming(self) -> Coming:
        """The pods with GPUs that are bound here and have not come to run yet."""
        uids = {
            uid
            for uid, pod in self.pods.by_uid.items()
            if pod.demand is not None and not (pod.is_ended or pod.is_leaving)
        }
        try:
            admitted = {one.pod_uid for one in checkpoint.read(self._folder)}
        except CheckpointError:
            admitted = uids  # nobody can say
        started = {*self.starts.started, *(self.starts.others() or ()), *self.mig.uids()}
        return Coming(uids - admitted - started, uids - started)

    def whole_gpus(self) -> dict[str, frozenset[str]] | None:
        """The GPUs that pods hold whole, or MIG devices of, by uid; None while that is unknown."""
        others, mig = self.starts.others(), self.mig.held()
        if others is None or mig is None:
            return None
        found: dict[str, frozenset[str]] = {}
        for uid, containers in self.starts.parts(others).items():
            uuids = {part.uuid for parts in containers.values() for part in parts if part.whole}
            if uuids:
                found[uid] = frozenset(uuids)
        for uid, gpus in mig.items():
            found[uid] = found.get(uid, frozenset()) | gpus
        return found

    def whole(self, uuids: Iterable[str]) -> Edits:
        """What a container with whole GPUs gets; raises OSError."""
        return container_edits.whole(self._driver_files(), self._minors(uuids))

    def sliced(self, pod: PodOnNode, part: AssignedGpu, slices_name: str) -> Edits:
        """What a container with a slice gets; raises OSError."""
        edits = container_edits.sliced(
            self._driver_files(),
            self._minors([part.uuid]),
            self._library,
            self._server.folder / "containers" / slices_name,
        )
        if pod.demand is not None and pod.demand.mps and self._isolation.mps is not None:
            options = self._isolation.mps.options
            return container_edits.with_mps(edits, options, part.compute, part.memory_mib)
        return edits

    def counted(self, uuids: Iterable[str], slices_name: str) -> Edits:
        """What a container with whole GPUs gets whose calls are counted; raises OSError."""
        folder = self._server.folder / "containers" / slices_name
        files, minors = self._driver_files(), self._minors(uuids)
        return container_edits.sliced(files, minors, self._library, folder)

    def missing(self, pod: PodOnNode) -> str:
        """What the node lacks for a pod, or ""."""
        if pod.demand is None or not pod.demand.mps:
            return ""
        mps = self._isolation.mps
        return mps.health.missing if mps is not None else _NO_MPS

    async def write(self, pod: PodOnNode, assignment: GpuAssignment) -> str:
        """Write what was chosen for a pod into its annotation; return why not, or ""."""
        text = msgspec.json.encode(assignment).decode()
        wanted: Manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod.name,
                "namespace": pod.namespace,
                # Refused if it is another pod of this name by now.
                "uid": pod.uid,
                "annotations": {names.GPU_ASSIGNMENT: text},
            },
        }
        try:
            # Refused, too, if somebody else has written an assignment.
            await self._client.apply(PODS, wanted, field_manager=_MANAGER, force=False)
        except KubeError as error:
            return str(error)
        return ""

    def _minors(self, uuids: Iterable[str]) -> list[int]:
        wanted = set(uuids)
        return [gpu.minor for gpu in self._driver.inventory.gpus if gpu.uuid in wanted]

    def _driver_files(self) -> DriverFiles:
        # Anew each time: a driver is replaced, and its devices come with its first use.
        try:
            return driver_files.find(self._settings.driver)
        except DriverError as error:
            raise OSError(str(error)) from error

    def _mig_edits(self, devices: Iterable[tuple[GpuFacts, MigDevice]]) -> Edits:
        wanted = [(gpu.minor, one.gi, one.ci) for gpu, one in devices]
        return container_edits.mig(self._driver_files(), wanted)

    def _come(self) -> None:
        """Let the plugins answer; those of MIG devices come with the first of their profile."""
        profiles = {one.resource for _, one in self.mig.devices.values()} | self._early.profiles
        mig = (MigDevices(resource, self.mig) for resource in sorted(profiles))
        self._early.come([*self._plugins, *mig], self._is_known)

    def _forget(self, pod_uid: str) -> None:
        self.starts.forget(pod_uid)
        self.mig.forget(pod_uid)

    def _listed(self) -> list[PodOnNode]:
        return list(self.pods.by_uid.values())

    def _is_known(self) -> bool:
        return self._driver.opened > 0

    async def _forget_gone(self) -> None:
        await self.pods.synced.wait()
        self._leaving.add(self.starts.gone(self.pods.by_uid, self.mig.uids()))

    async def _tell_changes(self) -> None:
        """Send the devices when the driver comes, or health or MIG devices change."""
        told = None
        while True:
            if (now := (self._is_known(), self.gpus(), self.mig.devices)) != told:
                told = now
                self._come()
                self._early.tell(is_known=now[0])
            await asyncio.sleep(_LOOK)
