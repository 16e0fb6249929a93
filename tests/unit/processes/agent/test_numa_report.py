"""What the agent tells of NUMA zones is what the scheduler reads of them."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.kube.objects.numa_topology import project_topology
from alnair.kube.objects.numa_topology_wire import NodeResourceTopologyWire
from alnair.model.numa_topology import NumaTopology
from alnair.model.pods_fingerprint import pods_fingerprint
from alnair.node.numa_nodes import NumaNode
from alnair.processes.agent import numa_report as reports
from alnair.processes.agent.numa_report import NumaReports, ZoneUse, numa_report
from alnair.processes.agent.settings import Alignment, Policy
from kit.described_gpus import DescribedDriver, gpu, inventory, numa_folders
from kit.fault_server import FaultServer, serving, status
from kit.manual_clock import running

GIB = 1 << 30
ZONES = (
    NumaNode(0, frozenset(range(8)), 64 * GIB, {0: 10, 1: 21, 2: 80}),
    NumaNode(1, frozenset(range(8, 12)), 32 * GIB, {0: 21, 1: 10, 2: 80}),
)
GPUS = inventory(gpu(0), gpu(1), gpu(2), gpu(3, mig=True))
PODS = (("default", "train"), ("kube-system", "dns"))


def read(
    use: ZoneUse, alignment: Alignment | None = None, problems: Mapping[str, str] | None = None
) -> NumaTopology:
    report = numa_report("n", ZONES, GPUS, alignment or Alignment(), use, problems or {})
    return project_topology(msgspec.convert(report, NodeResourceTopologyWire))


def test_the_scheduler_reads_what_is_free_in_each_zone() -> None:
    used = {0: {"cpu": 1500, "memory": GIB, "nvidia.com/gpu": 1}, 1: {"cpu": 9000}}
    alignment = Alignment("single-numa-node", "pod")
    found = read(ZoneUse(used, PODS), alignment)
    assert (found.policy, found.pod_scope, found.problem) == ("single-numa-node", True, "")
    assert [dict(zone.available) for zone in found.zones] == [
        {"cpu": 6500, "memory": 63 * GIB, "nvidia.com/gpu": 1},
        {"cpu": 0, "memory": 32 * GIB, "nvidia.com/gpu": 1},
    ]
    assert [dict(zone.costs) for zone in found.zones] == [{0: 10, 1: 21}, {0: 21, 1: 10}]
    assert found.fingerprint == pods_fingerprint(PODS)
    assert not found.exclusive_only


def test_a_sick_gpu_is_not_available() -> None:
    found = read(ZoneUse(), problems={"GPU-1": "XID 79"})
    assert [dict(zone.available)["nvidia.com/gpu"] for zone in found.zones] == [1, 1]
    found = read(ZoneUse(), problems=dict.fromkeys(("GPU-0", "GPU-1", "GPU-2"), "XID 79"))
    assert [dict(zone.available)["nvidia.com/gpu"] for zone in found.zones] == [0, 0]


def test_mig_devices_are_told_in_the_zone_of_their_gpu_and_as_none_in_the_others() -> None:
    cut = inventory(gpu(0), gpu(1, cut=["1g.10gb", "1g.10gb", "2g.20gb"]), gpu(2))
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"
    used = ZoneUse({0: {small: 1}})
    report = numa_report("n", ZONES, cut, Alignment(), used)
    found = project_topology(msgspec.convert(report, NodeResourceTopologyWire))
    assert [
        {name: n for name, n in zone.available if name.startswith("nvidia.com/")}
        for zone in found.zones
    ] == [
        {"nvidia.com/gpu": 1, small: 1, large: 1},
        {"nvidia.com/gpu": 1, small: 0, large: 0},
    ]
    report = numa_report("n", ZONES, cut, Alignment(), used, {"GPU-1": "XID 79"})
    found = project_topology(msgspec.convert(report, NodeResourceTopologyWire))
    assert dict(found.zones[0].available)[large] == 0


class Nothing(FaultServer):
    """A cluster that has no such kind; counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.news = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        self.news.set()
        return web.json_response(status(404, "NotFound"), status=404)


async def test_a_cluster_without_the_kind_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reports, "EVERY", 0.01)
    monkeypatch.setattr(reports, "READ_EVERY", 0.0)
    caplog.set_level("INFO")
    numa_folders(tmp_path, {0: ("0", GIB, "10 20"), 1: ("1", GIB, "20 10")})
    server = Nothing()

    async def use(zones: Collection[NumaNode]) -> ZoneUse:
        return ZoneUse()

    async with serving(server), Client(server.connection) as client:
        work = NumaReports(client, "n", DescribedDriver(GPUS), use, sysfs=tmp_path)
        async with running(work.run()), asyncio.timeout(30):
            while server.asked < 6:  # each time the object is asked for, and then applied
                server.news.clear()
                await server.news.wait()
    said = [record.message for record in caplog.records if "NodeResourceTopology" in record.message]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("nodes", "alignment"),
    [
        ({}, Alignment("single-numa-node")),
        ({0: ("0-3", GIB, "10")}, Alignment()),
    ],
)
async def test_where_there_is_nothing_to_tell_it_ends(
    tmp_path: Path, nodes: dict[int, tuple[str, int, str]], alignment: Alignment
) -> None:
    async def use(zones: Collection[NumaNode]) -> ZoneUse:
        raise AssertionError("nobody needs to know")

    if nodes:
        numa_folders(tmp_path, nodes)
    server = Nothing()
    async with serving(server), Client(server.connection) as client:
        driver = DescribedDriver(GPUS)
        await NumaReports(client, "n", driver, use, alignment=alignment, sysfs=tmp_path).run()
    assert server.asked == 0


async def test_what_was_told_stays_while_the_kubelet_does_not_answer(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reports, "EVERY", 0.0)
    caplog.set_level("INFO")
    numa_folders(tmp_path, {0: ("0", GIB, "10 20"), 1: ("1", GIB, "20 10")})
    asked: list[Collection[NumaNode]] = []
    enough = asyncio.Event()

    async def use(zones: Collection[NumaNode]) -> None:
        asked.append(zones)
        if len(asked) == 4:
            enough.set()

    server = Nothing()
    async with serving(server), Client(server.connection) as client:
        work = NumaReports(client, "n", DescribedDriver(GPUS), use, sysfs=tmp_path)
        async with running(work.run()), asyncio.timeout(30):
            await enough.wait()
    assert server.asked == 0
    assert [zone.number for zone in asked[0]] == [0, 1]
    said = [r.message for r in caplog.records if r.name == reports.__name__]
    assert said == ["node n: its kubelet does not say what is used: its NUMA zones stay as told"]


@pytest.mark.parametrize(
    ("policy", "insists"),
    [("none", False), ("best-effort", False), ("restricted", True), ("single-numa-node", True)],
)
def test_these_policies_reject_what_cannot_be_aligned(policy: Policy, insists: bool) -> None:
    assert Alignment(policy).insists == insists
