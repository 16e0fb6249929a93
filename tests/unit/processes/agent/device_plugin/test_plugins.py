"""The two resources on a kubelet: what it is told, what it gives, and that containers start."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from msgspec.structs import replace

from alnair.model import names
from alnair.node.kubelet.cdi import KIND
from alnair.node.kubelet.checkpoint import read
from alnair.node.kubelet.plugin_server import PluginServer
from alnair.node.kubelet.registration import Registrations
from alnair.processes.agent.device_plugin.plugins import Slots, WholeGpus
from kit.kubelet_sockets import Kubelet
from kit.manual_clock import running
from kit.node_state import asks, pod_on_node
from kit.plugin_node import GPUS, Node, on_gpu, part, whole_part


@asynccontextmanager
async def served(node: Node) -> AsyncIterator[Kubelet]:
    """Both resources, registered."""
    kubelet = node.kubelet
    slots = PluginServer(kubelet.plugins, Slots(node.starts, lambda: node.gpus))
    whole = PluginServer(kubelet.plugins, whole_gpus(node))
    async with running(Registrations(kubelet.plugins, [whole, slots]).run()):
        await kubelet.registered(names.GPU, names.VGPU)
        yield kubelet


def whole_gpus(node: Node) -> WholeGpus:
    return WholeGpus(
        node.starts,
        lambda: node.gpus,
        node.kubelet.plugins,
        lambda: list(node.pods.by_uid.values()),
    )


async def test_a_pod_with_a_slice_goes_all_the_way(node: Node) -> None:
    pod = on_gpu(pod_on_node("a", asks(memory=5_000, compute=50)), main=[part(1)])
    node.add(pod)
    async with served(node) as kubelet:
        held = await kubelet.admit(pod.uid, "main", names.VGPU)
        (allocation,) = read(kubelet.plugins)
        assert allocation.device.startswith(f"{KIND}=")
        assert not node.files, "its file is written when it starts"
        await kubelet.pre_start(held)
        assert node.files == {allocation.device.removeprefix(f"{KIND}="): (part(1),)}


async def test_a_whole_gpu_is_the_one_that_the_scheduler_chose(node: Node) -> None:
    pod = on_gpu(pod_on_node("w", asks(whole=1)), main=[whole_part(1)])
    node.add(pod)
    async with served(node) as kubelet:
        held = await kubelet.admit(pod.uid, "main", names.GPU)
        assert held.ids == [GPUS[1].uuid]
        await kubelet.pre_start(held)
    assert list(node.files.values()) == [(whole_part(1),)]


async def test_a_refusal_reaches_the_kubelet(node: Node) -> None:
    pod = on_gpu(pod_on_node("a", asks(memory=5_000)), main=[part(1, memory=1)])
    node.add(pod)
    async with served(node) as kubelet:
        held = await kubelet.admit(pod.uid, "main", names.VGPU)
        with pytest.raises(grpc.aio.AioRpcError, match="cannot start as annotation"):
            await kubelet.pre_start(held)


async def test_what_was_admitted_starts_after_the_kubelet_restarted(node: Node) -> None:
    pod = on_gpu(pod_on_node("a", asks(memory=5_000, compute=50)), main=[part(1)])
    node.add(pod)
    async with served(node) as kubelet:
        held = await kubelet.admit(pod.uid, "main", names.VGPU)
        await kubelet.restart()
        await kubelet.registered(names.GPU, names.VGPU)
        await kubelet.pre_start(held)
    assert list(node.files.values()) == [(part(1),)]


async def test_containers_that_start_at_once_do_not_wait_for_each_other(node: Node) -> None:
    pods = [
        on_gpu(pod_on_node(f"p{i}", asks(memory=500, compute=5)), main=[part(i % 2, 500, 5)])
        for i in range(20)
    ]
    node.add(*pods)
    async with served(node) as kubelet:
        held = [await kubelet.admit(pod.uid, "main", names.VGPU) for pod in pods]
        await asyncio.gather(*map(kubelet.pre_start, held))
    assert len(node.files) == len(node.server.containers) == 20


async def test_no_name_is_given_twice(node: Node) -> None:
    slots = Slots(node.starts, lambda: node.gpus)
    assert len({slots.allocate(["slot-0"]) for _ in range(100)}) == 100


async def test_slots_are_so_many_for_each_gpu_that_may_be_sliced(node: Node) -> None:
    slots = Slots(node.starts, lambda: node.gpus)

    def healthy() -> list[bool]:
        return [device.is_healthy for device in slots.devices()]

    assert healthy() == [True] * 200
    assert len({device.id for device in slots.devices()}) == 200
    node.gpus[0] = replace(node.gpus[0], problem="XID 79")
    assert healthy() == [True] * 100 + [False] * 100
    node.gpus[1] = replace(node.gpus[1], may_be_sliced=False)
    assert healthy() == [False] * 100
    node.gpus.clear()
    assert healthy() == []


async def test_whole_gpus_are_told_with_health_and_nearness(node: Node) -> None:
    node.gpus[0] = replace(node.gpus[0], problem="XID 79", numa=1)
    found = whole_gpus(node).devices()
    assert [(d.id, d.is_healthy, d.numa) for d in found] == [
        (GPUS[0].uuid, False, 1),
        (GPUS[1].uuid, True, None),
    ]
    node.gpus[1] = replace(node.gpus[1], may_be_sliced=False)
    assert [device.id for device in whole_gpus(node).devices()] == [GPUS[0].uuid]


async def test_a_preference_has_what_must_be_and_no_more_than_asked(node: Node) -> None:
    slots = Slots(node.starts, lambda: node.gpus)
    assert slots.prefer(["slot-2", "slot-1", "slot-3"], ["slot-3"], 2) == ["slot-3", "slot-1"]
    assert slots.prefer(["slot-1"], [], 2) == ["slot-1"]


async def test_a_preference_is_answered_without_a_checkpoint(node: Node) -> None:
    (node.kubelet.plugins / "kubelet_internal_checkpoint").write_bytes(b"{")
    ids = [gpu.uuid for gpu in GPUS]
    assert whole_gpus(node).prefer(ids, [], 1) == ids[:1]
