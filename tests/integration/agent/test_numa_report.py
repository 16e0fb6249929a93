"""NodeResourceTopology on a real API server: ours is kept true, that of others left alone."""

import contextlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.numa_topology import project_topology
from alnair.kube.objects.numa_topology_wire import NodeResourceTopologyWire
from alnair.kube.resources import NODE_RESOURCE_TOPOLOGIES
from alnair.model.numa_topology import NumaTopology
from alnair.node.numa_nodes import NumaNode
from alnair.processes.agent import numa_report as reports
from alnair.processes.agent.numa_report import NumaReports, ZoneUse, numa_report
from kit.described_gpus import DescribedDriver, gpu, inventory, numa_folders
from kit.live.scheduler_process import eventually
from kit.manual_clock import running

NODE = "has-zones"
GIB = 1 << 30
GPUS = inventory(gpu(0), gpu(1), gpu(2), gpu(3))
TYPED = NODE_RESOURCE_TOPOLOGIES.typed(NodeResourceTopologyWire)


@pytest.fixture
async def node(client: Client) -> AsyncIterator[str]:
    yield NODE
    with contextlib.suppress(NotFound):
        await client.delete(NODE_RESOURCE_TOPOLOGIES, NODE)


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reports, "EVERY", 0.05)
    monkeypatch.setattr(reports, "READ_EVERY", 0.1)
    numa_folders(tmp_path, {0: ("0-7", 8 * GIB, "10 21"), 1: ("8-15", 8 * GIB, "21 10")})
    return tmp_path


async def seen(client: Client) -> NumaTopology | None:
    with contextlib.suppress(NotFound):
        return project_topology(await client.get(TYPED, NODE))
    return None


async def test_what_is_free_is_told_as_it_changes(client: Client, node: str, sysfs: Path) -> None:
    now = [ZoneUse()]

    async def use(zones: Collection[NumaNode]) -> ZoneUse:
        return now[0]

    async def free(*gpus: int) -> None:
        async def check() -> bool:
            found = await seen(client)
            zones = found.zones if found else ()
            return [dict(zone.available)["nvidia.com/gpu"] for zone in zones] == list(gpus)

        await eventually(check, what=f"{gpus} GPUs are free")

    work = NumaReports(client, node, DescribedDriver(GPUS), use, sysfs=sysfs)
    async with running(work.run()):
        await free(2, 2)
        now[0] = ZoneUse({1: {"nvidia.com/gpu": 1}}, (("default", "train"),))
        await free(2, 1)
        await client.delete(NODE_RESOURCE_TOPOLOGIES, node)
        await free(2, 1)
        await client.merge_patch(NODE_RESOURCE_TOPOLOGIES, node, {"attributes": []})

        async def has_policy() -> bool:
            found = await client.get(NODE_RESOURCE_TOPOLOGIES, node)
            return bool(found["attributes"])

        await eventually(has_policy, what="an edit is repaired")
    found = await seen(client)
    assert found is not None
    assert found.reported > 0
    assert [dict(zone.costs) for zone in found.zones] == [{0: 10, 1: 21}, {0: 21, 1: 10}]


async def test_another_exporters_object_is_left_to_it(
    client: Client, node: str, sysfs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    other = numa_report(node, (), GPUS, reports.Alignment(), ZoneUse())
    await client.apply(NODE_RESOURCE_TOPOLOGIES, other, field_manager="nfd-topology-updater")
    before = await client.get(NODE_RESOURCE_TOPOLOGIES, node)

    async def use(zones: Collection[NumaNode]) -> ZoneUse:
        return ZoneUse()

    work = NumaReports(client, node, DescribedDriver(GPUS), use, sysfs=sysfs)
    async with running(work.run()):

        async def is_told() -> bool:
            return any("nfd-topology-updater" in record.message for record in caplog.records)

        await eventually(is_told)
    assert await client.get(NODE_RESOURCE_TOPOLOGIES, node) == before
