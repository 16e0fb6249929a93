"""MIG devices on a kubelet: told by profile, given by UUID, started with what opens them."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.node.inventory import GpuFacts, MigDevice
from alnair.node.kubelet.cdi import KIND, CdiSpecs, Edits, Mount
from alnair.node.kubelet.plugin_server import StartRefusedError
from alnair.processes.agent.device_plugin import mig
from alnair.processes.agent.device_plugin.early import EarlyPlugins
from alnair.processes.agent.device_plugin.mig import MigDevices, MigStarts
from alnair.processes.agent.device_plugin.process import Plugins
from alnair.processes.agent.settings import PluginSettings, WholeGpusMode
from kit.described_gpus import DescribedDriver, gpu, inventory
from kit.kubelet_sockets import Held, answer
from kit.manual_clock import running
from kit.node_state import pod_on_node
from kit.plugin_node import Node

SMALL, MEDIA = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.me"
CUT = inventory(gpu(0), gpu(1, cut=["1g.10gb", "1g.10gb+me", "1g.10gb"]), gpu(2, cut=["1g.10gb"]))


class Migs:
    """MIG starts on a node, with GPUs and problems that a test says."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.inventory = CUT
        self.problems: dict[str, str] = {}
        self.specs = CdiSpecs(node.kubelet.folder / "mig-cdi")
        self.edits_error = ""
        self.starts = self.agent()

    def agent(self) -> MigStarts:
        found = MigStarts(
            self.specs,
            self.node.kubelet.plugins,
            lambda: self.inventory,
            lambda: self.problems,
            self._edits,
            self.node.pods.owner,
            self.node._refuse,
        )
        found.take_over()
        return found

    def give(self, name: str, *ids: str, device: str = f"{KIND}=1", resource: str = SMALL) -> Held:
        """Let the kubelet allocate devices to a pod."""
        pod = pod_on_node(name)
        self.node.add(pod)
        return self.node.kubelet.give(pod.uid, "main", resource, {0: list(ids)}, answer(device))

    async def start(self, held: Held) -> None:
        await self.starts.start(held.resource, frozenset(held.ids))

    def files(self) -> dict[str, tuple[str, ...]]:
        return {one.device: one.mig for one in self.specs.load()}

    def _edits(self, devices: Iterable[tuple[GpuFacts, MigDevice]]) -> Edits:
        if self.edits_error:
            raise OSError(self.edits_error)
        return Edits(mounts=tuple(Mount(f"/{g.index}/{one.gi}", "/to") for g, one in devices))


@pytest.fixture
def migs(node: Node) -> Migs:
    return Migs(node)


async def test_devices_are_told_by_profile_with_their_gpus_health_and_nearness(migs: Migs) -> None:
    migs.problems["GPU-1"] = "XID 79"
    told = [(d.id, d.is_healthy, d.numa) for d in MigDevices(SMALL, migs.starts).devices()]
    assert told == [("MIG-1-1", False, 0), ("MIG-1-3", False, 0), ("MIG-2-1", True, 1)]
    (media,) = MigDevices(MEDIA, migs.starts).devices()
    assert media.id == "MIG-1-2"
    migs.inventory = inventory(gpu(0), gpu(1, mig=True))
    assert MigDevices(SMALL, migs.starts).devices() == []


@pytest.mark.parametrize(
    ("profile", "resource"),
    [
        ("1c.2g.20gb", "1c.2g.20gb"),
        ("1g.20gb+me.all", "1g.20gb.me.all"),
        ("1g.5gb-me", "1g.5gb-me"),
    ],
)
def test_resources_are_called_as_by_nvidias_plugin(profile: str, resource: str) -> None:
    assert MigDevice("MIG-1", profile, 1, 0, 1).resource == f"nvidia.com/mig-{resource}"


async def test_gpus_that_are_used_already_are_preferred(migs: Migs) -> None:
    plugin = MigDevices(SMALL, migs.starts)
    free = ["MIG-1-1", "MIG-1-3", "MIG-2-1"]
    assert plugin.prefer(free, [], 1) == ["MIG-2-1"]
    assert plugin.prefer(free[:1] + free[2:], [], 1) == ["MIG-1-1"]
    assert plugin.prefer(free, ["MIG-1-3"], 2) == ["MIG-1-3", "MIG-2-1"]


async def test_a_container_starts_with_the_devices_that_the_kubelet_gave(migs: Migs) -> None:
    held = migs.give("a", "MIG-1-3", "MIG-1-1")
    await migs.start(held)
    (one,) = migs.specs.load()
    assert (one.pod_uid, one.pod, one.container) == ("uid-a", "a", "main")
    assert migs.files() == {"1": ("MIG-1-1", "MIG-1-3")}
    assert migs.starts.held() == {"uid-a": {"GPU-1"}}
    (holder,) = migs.starts.holders()
    assert (holder.pod.uid, holder.pod.container) == ("uid-a", "main")
    assert holder.uuids == ("MIG-1-1", "MIG-1-3")
    migs.starts.forget("uid-a")
    assert migs.files() == {}


async def test_the_next_agent_takes_back_what_this_one_gave(migs: Migs) -> None:
    await migs.start(migs.give("a", "MIG-2-1"))
    after = migs.agent()
    assert after.uids() == {"uid-a"}
    after.forget("uid-a")
    assert migs.files() == {}


async def test_what_another_plugin_gave_is_left_as_it_is_and_known(migs: Migs) -> None:
    held = migs.give("theirs", "MIG-1-2", device="nvidia.com/gpu=MIG-1-2", resource=MEDIA)
    await migs.start(held)
    assert migs.files() == {}
    assert migs.starts.held() == {"uid-theirs": {"GPU-1"}}


async def test_a_pod_on_a_gpu_that_fails_is_replaced_once(migs: Migs) -> None:
    held = migs.give("a", "MIG-1-1")
    migs.problems["GPU-1"] = "XID 79: fell off"
    failed = "GPU 1 (GPU-1) of MIG device MIG-1-1 is unhealthy: XID 79: fell off"
    for is_first in (True, False):
        with pytest.raises(StartRefusedError) as refused:
            await migs.start(held)
        assert str(refused.value) == failed
        assert migs.node.refused.pop() == ("a", failed, is_first)


async def test_a_pod_whose_device_was_destroyed_is_replaced_if_that_does_not_come_back(
    migs: Migs, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, gone = migs.give("a", "MIG-1-1"), "MIG device MIG-1-1 is not there any more"
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(mig, "time", SimpleNamespace(monotonic=lambda: clock.now))
    migs.inventory = inventory(gpu(0), gpu(1, mig=True))

    async def refused() -> bool:
        """Whether it is replaced."""
        with pytest.raises(StartRefusedError, match=gone):
            await migs.start(held)
        return migs.node.refused.pop() == ("a", gone, True)

    assert not await refused()
    migs.inventory = CUT
    await migs.start(held)
    migs.inventory = inventory(gpu(0), gpu(1, mig=True))
    clock.now += 100
    assert not await refused()
    clock.now += 31
    assert await refused()


async def test_what_is_not_sure_or_not_ready_is_tried_again(migs: Migs) -> None:
    held = migs.give("a", "MIG-1-1")
    with pytest.raises(StartRefusedError, match="does not say whose 2 ids"):
        await migs.starts.start(SMALL, frozenset(("MIG-1-1", "MIG-1-3")))
    migs.edits_error = "nvidia-cap12 is missing"
    with pytest.raises(StartRefusedError, match="cannot be prepared: nvidia-cap12 is missing"):
        await migs.start(held)
    (migs.node.kubelet.plugins / "kubelet_internal_checkpoint").write_bytes(b"{")
    with pytest.raises(StartRefusedError, match="cannot be read"):
        await migs.start(held)
    assert migs.starts.held() is None
    assert migs.starts.holders() == []
    migs.inventory = inventory(gpu(0))
    assert migs.starts.held() == {}, "nobody need know who holds devices that are not there"
    assert migs.node.refused == []


def plugins(node: Node, driver: DescribedDriver, whole: WholeGpusMode = "auto") -> Plugins:
    settings = PluginSettings("node", node.kubelet.folder, whole=whole)
    found = Plugins(
        settings,
        EarlyPlugins(settings, node.kubelet.folder / "agent"),
        Client(Connection("http://127.0.0.1:1")),
        node.server,
        driver,
        cast("Any", None),
        lambda *_: None,
        cast("Any", SimpleNamespace(unhealthy={})),
        cast("Any", SimpleNamespace(mps=None)),
    )
    found._come()
    return found


async def test_the_kubelet_is_told_when_a_gpu_is_cut_up_anew(node: Node) -> None:
    driver = DescribedDriver(inventory(gpu(0), gpu(1, cut=["1g.10gb"])))
    found, kubelet = plugins(node, driver), node.kubelet
    async with running(found._early.run()), running(found._tell_changes()):
        await kubelet.registered(SMALL, "nvidia.com/gpu")
        await kubelet.until(lambda: kubelet.endpoints[SMALL].healthy() == ["MIG-1-1"])
        await kubelet.until(lambda: kubelet.endpoints["nvidia.com/gpu"].healthy() == ["GPU-0"])
        driver.inventory = inventory(gpu(0), gpu(1, cut=["1g.10gb+me", "1g.10gb+me"]))
        await kubelet.registered(MEDIA)
        await kubelet.until(lambda: not kubelet.endpoints[SMALL].healthy())
        assert kubelet.endpoints[MEDIA].healthy() == ["MIG-1-1", "MIG-1-2"]
        driver.inventory = inventory(gpu(0), gpu(1))
        await kubelet.until(lambda: not kubelet.endpoints[MEDIA].healthy())
        await kubelet.until(lambda: len(kubelet.endpoints["nvidia.com/gpu"].healthy()) == 2)
        assert sorted(kubelet.registrations) == [
            "alnair/vgpu",
            "nvidia.com/gpu",
            SMALL,
            MEDIA,
        ]


@pytest.mark.parametrize(
    ("whole", "other", "is_served"),
    [("never", False, False), ("auto", True, False), ("always", True, True), ("auto", False, True)],
)
async def test_mig_devices_are_served_where_whole_gpus_are(
    node: Node, whole: WholeGpusMode, other: bool, is_served: bool
) -> None:
    if other:
        (node.kubelet.plugins / "nvidia-mig-1g.10gb.sock").touch()
    found = plugins(node, DescribedDriver(CUT), whole)
    async with running(found._early.run()):
        await node.kubelet.registered("alnair/vgpu", *([SMALL, MEDIA] if is_served else ()))
        assert (SMALL in node.kubelet.endpoints) == is_served


async def test_a_pod_with_a_mig_device_may_use_its_gpu(node: Node) -> None:
    found = plugins(node, DescribedDriver(CUT))
    node.kubelet.give("uid-a", "main", SMALL, {0: ["MIG-1-1"]})
    node.kubelet.give("uid-b", "main", "nvidia.com/gpu", {0: ["GPU-0"]})
    assert found.whole_gpus() == {"uid-a": {"GPU-1"}, "uid-b": {"GPU-0"}}
    (node.kubelet.plugins / "kubelet_internal_checkpoint").write_bytes(b"{")
    assert found.whole_gpus() is None


async def test_a_refusal_reaches_the_kubelet(node: Node) -> None:
    found = plugins(node, DescribedDriver(CUT))
    async with running(found._early.run()):
        await node.kubelet.registered(SMALL)
        held = await node.kubelet.admit("uid-a", "main", SMALL, 2)
        assert held.ids == ["MIG-2-1", "MIG-1-1"]
        # There is no driver here whose files a container could get.
        with pytest.raises(grpc.aio.AioRpcError, match="the start cannot be prepared: libcuda"):
            await node.kubelet.pre_start(held)
