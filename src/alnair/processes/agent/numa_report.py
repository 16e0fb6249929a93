"""Tells what is free in each NUMA zone of the node: the object NodeResourceTopology.

In the form of v1alpha2 that topology exporters write and `alnair.kube.objects.numa_topology` reads.
Another exporter's object is left alone.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import KubeError, NotFound
from alnair.kube.resources import NODE_RESOURCE_TOPOLOGIES, Manifest
from alnair.model import names
from alnair.model.pods_fingerprint import pods_fingerprint
from alnair.node.gpu_driver import GpuDriver
from alnair.node.inventory import SYSFS, Inventory
from alnair.node.numa_nodes import NumaNode, read_numa_nodes
from alnair.processes.agent.node_object import FIELD_MANAGER, FieldsOfManager
from alnair.processes.agent.settings import Alignment

#: Seconds between looks at what is used.
EVERY: Final = 5.0
#: Seconds after which the object is read again though there is no news.
READ_EVERY: Final = 60.0
_FINGERPRINT: Final = "topology.node.k8s.io/fingerprint"
_HEALTHY: Final[Mapping[str, str]] = {}

#: NUMA node → resource → amount: millicores of cpu, bytes of memory, whole units of all else.
ZoneAmounts = Mapping[int, Mapping[str, int]]

_log = logging.getLogger(__name__)


class ZoneUse(msgspec.Struct, frozen=True):
    """What of the zones is used, and by which pods (namespace, name): all that were counted."""

    used: ZoneAmounts = {}
    pods: tuple[tuple[str, str], ...] = ()


def numa_report(
    node: str,
    zones: Collection[NumaNode],
    inventory: Inventory,
    alignment: Alignment,
    use: ZoneUse,
    problems: Mapping[str, str] = _HEALTHY,
) -> Manifest:
    """Return the object.

    Args:
        node: Name of the node.
        zones: Its NUMA nodes.
        inventory: Its GPUs; of those in MIG mode their MIG devices are counted.
        alignment: What the kubelet does.
        use: What is used.
        problems: Why nothing may start on a GPU, by UUID.
    """
    fingerprint = pods_fingerprint(use.pods)
    attributes = {
        "topologyManagerPolicy": alignment.policy,
        "topologyManagerScope": alignment.scope,
        "nodeTopologyPodsFingerprint": fingerprint,
        "nodeTopologyPodsFingerprintMethod": "all",
    }
    numbers = sorted(zone.number for zone in zones)
    devices = [(names.GPU, gpu) for gpu in inventory.sliceable]
    devices += [(one.resource, gpu) for gpu, one in inventory.mig_devices.values()]
    found = []
    for zone in zones:
        # A resource that one zone has is told of all.
        there = Counter({resource: 0 for resource, _ in [(names.GPU, None), *devices]})
        sick = Counter[str]()
        for resource, gpu in devices:
            if gpu.numa == zone.number:
                there[resource] += 1
                sick[resource] += bool(problems.get(gpu.uuid))
        costs = [
            {"name": _name(other), "value": zone.distances[other]}
            for other in numbers
            if other in zone.distances
        ]
        resources = _resources(zone, there, sick, use.used.get(zone.number, {}))
        name = _name(zone.number)
        found.append({"name": name, "type": "Node", "costs": costs, "resources": resources})
    return {
        "apiVersion": NODE_RESOURCE_TOPOLOGIES.api_version,
        "kind": NODE_RESOURCE_TOPOLOGIES.kind,
        "metadata": {"name": node, "annotations": {_FINGERPRINT: fingerprint}},
        "attributes": [{"name": name, "value": text} for name, text in attributes.items()],
        "zones": found,
    }


def _resources(
    zone: NumaNode, devices: Mapping[str, int], sick: Mapping[str, int], used: Mapping[str, int]
) -> list[dict[str, str]]:
    found = []
    capacity = {"cpu": 1000 * len(zone.cpus), "memory": zone.memory_bytes, **devices}
    for name, amount in capacity.items():
        allocatable = amount - sick.get(name, 0)
        available = max(allocatable - used.get(name, 0), 0)
        unit = "m" if name == "cpu" else ""
        found.append(
            {
                "name": name,
                "capacity": f"{amount}{unit}",
                "allocatable": f"{allocatable}{unit}",
                "available": f"{available}{unit}",
            }
        )
    return found


def _name(zone: int) -> str:
    return f"node-{zone}"


class NumaReports:
    """Writes the object while it runs.

    It does so on nodes with two or more NUMA nodes, or whose kubelet aligns, and where the cluster
    has the kind.

    Args:
        client: An open client.
        node: Name of this node.
        driver: Knows the GPUs.
        use: Tells what of the zones is used now; None if that cannot be known, and the object stays
            as it is.
        alignment: What the kubelet does.
        problems: Says why nothing may start on a GPU, by UUID.
        sysfs: The kernel's view of the machine.
    """

    def __init__(
        self,
        client: Client,
        node: str,
        driver: GpuDriver,
        use: Callable[[Collection[NumaNode]], Awaitable[ZoneUse | None]],
        *,
        alignment: Alignment | None = None,
        problems: Callable[[], Mapping[str, str]] = dict,
        sysfs: Path = SYSFS,
    ) -> None:
        self._client = client
        self._node = node
        self._driver = driver
        self._use = use
        self._alignment = alignment or Alignment()
        self._problems = problems
        self._sysfs = sysfs
        self._written: Manifest | None = None
        self._read_at = 0.0
        self._told = ""

    async def run(self) -> None:
        """Keep the object true until cancelled; returns at once where none is needed."""
        await self._driver.reopened(0)
        zones = await asyncio.to_thread(read_numa_nodes, self._sysfs)
        if not zones or (len(zones) < 2 and self._alignment.policy == "none"):
            return
        while True:
            if (use := await self._use(zones)) is None:
                self._say("its kubelet does not say what is used: its NUMA zones stay as told")
            else:
                inventory, problems = self._driver.inventory, self._problems()
                report = numa_report(self._node, zones, inventory, self._alignment, use, problems)
                if report != self._written or time.monotonic() - self._read_at > READ_EVERY:
                    await self._tell(report)
            await asyncio.sleep(EVERY)

    async def _tell(self, report: Manifest) -> None:
        # Where it is not ours to write, it is enough to look again after a while.
        self._written, self._read_at = report, time.monotonic()
        try:
            with contextlib.suppress(NotFound):
                found = await self._client.get(NODE_RESOURCE_TOPOLOGIES, self._node)
                if writer := _stranger(found):
                    self._say(f"its NodeResourceTopology is kept by {writer}, and left to it")
                    return
            await self._client.apply(NODE_RESOURCE_TOPOLOGIES, report, field_manager=FIELD_MANAGER)
            self._told = ""
        except NotFound:
            self._say("the cluster has no NodeResourceTopology: nobody is told of NUMA zones")
        except KubeError as error:
            self._written = None
            self._say(f"its NUMA zones are not told: {error}", logging.WARNING)

    def _say(self, text: str, level: int = logging.INFO) -> None:
        if text != self._told:
            _log.log(level, "node %s: %s", self._node, text)
        self._told = text


def _stranger(found: Mapping[str, Any]) -> str:
    """Who but us wrote the zones of an object; "" if nobody did."""
    fields = found.get("metadata", {}).get("managedFields") or []
    writers = msgspec.convert(fields, list[FieldsOfManager])
    others = [w.manager for w in writers if "f:zones" in w.fields_v1]
    if others == [FIELD_MANAGER]:
        return ""
    return next((name for name in others if name != FIELD_MANAGER), "somebody else")
