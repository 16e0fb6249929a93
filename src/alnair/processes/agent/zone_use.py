"""What of each NUMA zone is used, by what the kubelet says that containers hold.

The kubelet names CPUs and memory only where it gave them to a container alone (static CPU manager,
static memory manager); all else of a zone is shared, and free as far as the report is concerned.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

from alnair.model import names
from alnair.node.inventory import Inventory
from alnair.node.kubelet.api.podresources_pb2 import ContainerResources, ListPodResourcesResponse
from alnair.node.kubelet.pod_resources import PodResources, PodResourcesError
from alnair.node.numa_nodes import NumaNode
from alnair.processes.agent.numa_report import ZoneUse

_HEALTHY: Final[Mapping[str, str]] = {}

_Used = dict[int, Counter[str]]


class KubeletZoneUse:
    """Asks the kubelet what of the zones is used.

    Args:
        resources: The kubelet's API, open.
        inventory: Says which GPUs there are.
        problems: Says why nothing may start on a GPU, by UUID.
    """

    def __init__(
        self,
        resources: PodResources,
        inventory: Callable[[], Inventory],
        problems: Callable[[], Mapping[str, str]],
    ) -> None:
        self._resources = resources
        self._inventory = inventory
        self._problems = problems

    async def __call__(self, zones: Collection[NumaNode]) -> ZoneUse | None:
        """Return what is used now; None if the kubelet does not answer."""
        try:
            answer = await self._resources.answer()
        except PodResourcesError:
            return None
        return zone_use(answer, zones, self._inventory(), self._problems())


def zone_use(
    answer: ListPodResourcesResponse,
    zones: Collection[NumaNode],
    inventory: Inventory,
    problems: Mapping[str, str] = _HEALTHY,
) -> ZoneUse:
    """Return what is used of each zone, and by which pods.

    Args:
        answer: Of the kubelet, of the same moment for all pods.
        zones: The node's.
        inventory: Its GPUs and MIG devices, whose UUIDs are the ids of the kubelet.
        problems: Why nothing may start on a GPU, by UUID. Such a GPU is not among what may be used,
            so who holds it takes nothing of that.
    """
    used: _Used = {zone.number: Counter() for zone in zones}
    of_cpu = {cpu: zone.number for zone in zones for cpu in zone.cpus}
    of_gpu = {gpu.uuid: gpu.numa for gpu in inventory.gpus if not problems.get(gpu.uuid)}
    of_gpu |= {
        uuid: gpu.numa
        for uuid, (gpu, _) in inventory.mig_devices.items()
        if not problems.get(gpu.uuid)
    }
    for pod in answer.pod_resources:
        for container in pod.containers:
            _count(container, used, of_cpu, of_gpu)
    pods = tuple((pod.namespace, pod.name) for pod in answer.pod_resources)
    return ZoneUse({zone: dict(amounts) for zone, amounts in used.items()}, pods)


def _count(
    container: ContainerResources,
    used: _Used,
    of_cpu: dict[int, int],
    of_gpu: dict[str, int | None],
) -> None:
    for cpu in container.cpu_ids:
        if cpu in of_cpu:
            used[of_cpu[cpu]]["cpu"] += 1000
    for block in container.memory:
        for node in block.topology.nodes:
            # Which part of a block is in which of several zones is not said: none counts as free.
            if block.memory_type == "memory" and node.ID in used:
                used[node.ID]["memory"] += block.size
    for devices in container.devices:
        name = devices.resource_name
        if name == names.GPU or name.startswith(names.MIG_PREFIX):
            for uuid in devices.device_ids:
                zone = of_gpu.get(uuid)
                if zone in used:
                    used[zone][name] += 1
