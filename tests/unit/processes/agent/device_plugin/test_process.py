"""All of the device plugin joined: who serves what, and who has which whole GPUs."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.informer import Change, ChangeKind
from alnair.model import names
from alnair.node.load import GpuHolder
from alnair.node.numa_nodes import NumaNode
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent import numa_report
from alnair.processes.agent.device_plugin.early import EarlyPlugins
from alnair.processes.agent.device_plugin.process import Plugins
from alnair.processes.agent.settings import Alignment, PluginSettings, WholeGpusMode
from kit.described_gpus import DescribedDriver, gpu, inventory
from kit.fault_server import FaultServer, serving, status
from kit.manual_clock import running
from kit.node_state import asks, pod_on_node
from kit.plugin_node import GPUS, Node, on_gpu, whole_part

GPU = SimpleNamespace(
    uuid=GPUS[0].uuid, index=0, memory_mib=10_000, numa=None, model="A100", mig=False, minor=0
)


def plugins(node: Node, whole: WholeGpusMode = "auto") -> Plugins:
    inventory = SimpleNamespace(gpus=[GPU], mig_devices={})
    driver = SimpleNamespace(inventory=inventory, opened=1)
    settings = PluginSettings("node", node.kubelet.folder, whole=whole)
    return Plugins(
        settings,
        EarlyPlugins(settings, node.kubelet.folder / "agent"),
        Client(Connection("http://127.0.0.1:1")),
        node.server,
        cast("Any", driver),
        cast("Any", None),
        lambda *_: None,
        cast("Any", SimpleNamespace(unhealthy={})),
        cast("Any", SimpleNamespace(mps=None)),
    )


@pytest.mark.parametrize(
    ("whole", "other", "expected"),
    [
        ("auto", False, [names.GPU, names.VGPU]),
        ("auto", True, [names.VGPU]),
        ("always", True, [names.GPU, names.VGPU]),
        ("never", False, [names.VGPU]),
    ],
)
async def test_slices_are_always_served_and_whole_gpus_as_told(
    node: Node, whole: WholeGpusMode, other: bool, expected: list[str]
) -> None:
    if other:
        (node.kubelet.plugins / "nvidia-gpu.sock").touch()
    found = plugins(node, whole)
    async with running(found._early.run()):
        await node.kubelet.registered(*expected)
        assert sorted(node.kubelet.endpoints) == sorted(expected)


async def test_whole_gpus_of_other_plugins_are_their_pods(node: Node) -> None:
    found = plugins(node)
    ours, theirs = (
        on_gpu(pod_on_node("ours", asks(whole=1)), main=[whole_part(1)]),
        pod_on_node("theirs", asks(whole=1)),
    )
    node.add(ours, theirs)
    await node.start(node.give(ours, GPUS[1].uuid, resource=names.GPU))
    found.starts.started = node.starts.started
    for pod in (ours, theirs):
        found.pods._change(Change(ChangeKind.ADDED, ("team", pod.name), None, pod))
    node.kubelet.give(theirs.uid, "train", names.GPU, {0: [GPUS[0].uuid]})
    assert found.whole_gpus() == {
        ours.uid: frozenset({GPUS[1].uuid}),
        theirs.uid: frozenset({GPUS[0].uuid}),
    }
    assert found.holders() == [
        GpuHolder(OwningPod("team", "theirs", theirs.uid, "train"), (GPUS[0].uuid,)),
        GpuHolder(OwningPod("team", "ours", ours.uid, "main"), (GPUS[1].uuid,)),
    ]


class Applied(FaultServer):
    """A cluster that takes what is applied, and knows nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "PATCH":
            return web.json_response(status(404, "NotFound"), status=404)
        body = await request.json()
        self.bodies.put_nowait(body)
        return web.json_response(body)


async def test_the_zones_are_told_with_what_the_kubelet_gave_away_and_how_it_aligns(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = NumaNode(0, frozenset(range(4)), 1 << 30, {0: 10})
    monkeypatch.setattr(numa_report, "read_numa_nodes", lambda _: (zone,))
    node.kubelet.give("uid-a", "main", names.GPU, {0: ["GPU-0"]})
    async with serving(Applied()) as server, Client(server.connection) as client:
        settings = PluginSettings(
            "node", node.kubelet.folder, alignment=Alignment("restricted", "pod")
        )
        found = Plugins(
            settings,
            EarlyPlugins(settings, node.kubelet.folder / "agent"),
            client,
            node.server,
            DescribedDriver(inventory(gpu(0), gpu(1))),
            cast("Any", None),
            lambda *_: None,
            cast("Any", SimpleNamespace(unhealthy={})),
            cast("Any", SimpleNamespace(mps=None)),
        )
        async with running(found._zones.run()), asyncio.timeout(30):
            told = await server.bodies.get()
    attributes = {one["name"]: one["value"] for one in told["attributes"]}
    assert attributes["topologyManagerPolicy"] == "restricted"
    assert attributes["topologyManagerScope"] == "pod"
    (told_zone,) = told["zones"]
    gpus = next(one for one in told_zone["resources"] if one["name"] == names.GPU)
    assert (gpus["allocatable"], gpus["available"]) == ("2", "1")


async def test_who_has_whole_gpus_is_unknown_while_the_checkpoint_is_damaged(node: Node) -> None:
    found = plugins(node)
    note = node.kubelet.plugins / "kubelet_internal_checkpoint"
    note.write_bytes(b"{")
    assert (found.whole_gpus(), found.holders()) == (None, [])
    note.unlink()
    assert found.whole_gpus() == {}
