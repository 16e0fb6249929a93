"""The kubelet is served before the plugin is there, and nothing starts before it is."""

import asyncio
from collections.abc import Sequence

import grpc
import pytest

from alnair.model import names
from alnair.node.kubelet.plugin_server import PluginDevice
from alnair.node.kubelet.told_devices import ToldDevices
from alnair.processes.agent.device_plugin import early
from alnair.processes.agent.device_plugin.early import EarlyPlugins
from alnair.processes.agent.settings import PluginSettings
from kit.device_plugin import Plugin
from kit.kubelet_sockets import Kubelet
from kit.manual_clock import running
from kit.plugin_node import Node

TOLD = {names.GPU: [PluginDevice("GPU-0")], names.VGPU: [PluginDevice("slot-0")]}


@pytest.fixture
def kubelet(node: Node) -> Kubelet:
    (node.kubelet.folder / "agent").mkdir()
    return node.kubelet


def started(kubelet: Kubelet) -> EarlyPlugins:
    """What an agent begins with."""
    return EarlyPlugins(PluginSettings("node", kubelet.folder), kubelet.folder / "agent")


@pytest.fixture
def again(kubelet: Kubelet) -> EarlyPlugins:
    """The same, after one that had told of devices."""
    ToldDevices(kubelet.folder / "agent").note(TOLD)
    return started(kubelet)


def plugins(*ids: str) -> list[Plugin]:
    """Both resources, with these ids."""
    found = [Plugin(names.GPU), Plugin(names.VGPU)]
    for one in found:
        one.now = [PluginDevice(name) for name in ids]
    return found


def lists(kubelet: Kubelet, resource: str = names.GPU) -> list[list[tuple[str, str]]]:
    """All that the kubelet was told of a resource: ids and their health."""
    told = kubelet.endpoints[resource].lists
    return [[(one.ID, one.health) for one in devices] for devices in told]


async def test_an_agent_that_starts_tells_at_once_what_was_told_before(
    kubelet: Kubelet, again: EarlyPlugins
) -> None:
    assert again.may_begin
    again.begin()
    await again.registered(10)
    await kubelet.registered(names.GPU, names.VGPU)
    assert (await kubelet.admit("uid-a", "main", names.GPU)).ids == ["GPU-0"]
    await again.end()


async def test_the_first_agent_of_a_node_has_nothing_to_tell(kubelet: Kubelet) -> None:
    assert not started(kubelet).may_begin


async def test_no_container_starts_before_the_plugin_has_come(
    kubelet: Kubelet, again: EarlyPlugins
) -> None:
    again.begin()
    await kubelet.registered(names.GPU, names.VGPU)
    held = await kubelet.admit("uid-a", "main", names.VGPU)
    starting = asyncio.create_task(kubelet.pre_start(held))
    await asyncio.sleep(0.05)
    come = plugins("slot-0")
    assert not starting.done()
    again.come(come, lambda: True)
    await starting
    assert come[1].starts == [frozenset({"slot-0"})]
    await again.end()


async def test_the_kubelet_is_served_to_the_end_and_what_starts_after_the_plugin_is_held(
    kubelet: Kubelet, again: EarlyPlugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "_HOLD", 0.01)
    come = plugins("slot-0", "slot-1")
    again.come(come, lambda: True)
    async with running(again.run()):
        await kubelet.registered(names.GPU, names.VGPU)
    held = await kubelet.admit("uid-a", "main", names.VGPU)
    with pytest.raises(grpc.aio.AioRpcError, match="the node's agent is starting"):
        await kubelet.pre_start(held)
    assert come[1].starts == [], "a plugin that has ended decides nothing"
    await again.end()
    await kubelet.until(lambda: kubelet.endpoints[names.VGPU].stopped)


async def test_a_start_that_the_plugin_still_decides_on_ends_with_it(
    kubelet: Kubelet, again: EarlyPlugins
) -> None:
    asked = asyncio.Event()

    class Undecided(Plugin):
        async def start(self, ids: frozenset[str]) -> None:
            asked.set()
            await asyncio.Event().wait()

    undecided = Undecided(names.VGPU)
    undecided.now = [PluginDevice("slot-0")]
    again.come([undecided], lambda: True)
    async with running(again.run()):
        await kubelet.registered(names.VGPU)
        held = await kubelet.admit("uid-a", "main", names.VGPU)
        starting = asyncio.create_task(kubelet.pre_start(held))
        await asked.wait()
    with pytest.raises(grpc.aio.AioRpcError, match="the node's agent is ending"):
        await starting
    await again.end()


async def test_a_start_is_not_held_for_ever(
    kubelet: Kubelet, again: EarlyPlugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "_HOLD", 0.01)
    again.begin()
    await kubelet.registered(names.GPU, names.VGPU)
    held = await kubelet.admit("uid-a", "main", names.VGPU)
    with pytest.raises(grpc.aio.AioRpcError, match="the node's agent is starting"):
        await kubelet.pre_start(held)
    await again.end()


async def test_what_the_driver_does_not_confirm_is_not_offered_any_more(
    kubelet: Kubelet, again: EarlyPlugins
) -> None:
    again.begin()
    await kubelet.registered(names.GPU, names.VGPU)
    is_known = False
    come = plugins("GPU-1")
    again.come(come, lambda: is_known)
    again.tell(is_known=False)
    await kubelet.until(lambda: len(lists(kubelet)) == 2)
    is_known = True
    again.tell(is_known=True)
    await kubelet.until(lambda: len(lists(kubelet)) == 3)
    assert lists(kubelet) == [
        [("GPU-0", "Healthy")],
        [("GPU-0", "Unhealthy")],  # the driver did not answer in its time
        [("GPU-1", "Healthy")],
    ]
    assert ToldDevices(kubelet.folder / "agent").devices[names.GPU] == (PluginDevice("GPU-1"),)
    await again.end()


async def test_what_is_not_known_is_not_kept(kubelet: Kubelet) -> None:
    found = started(kubelet)
    found.come(plugins("GPU-1"), lambda: False)
    found.tell(is_known=False)
    assert not ToldDevices(kubelet.folder / "agent").devices


@pytest.mark.parametrize(
    ("must", "size", "expected"), [([], 1, ["a"]), (["c"], 2, ["c", "a"]), (["b"], 1, ["b"])]
)
def test_before_the_plugin_has_come_any_ids_will_do(
    must: Sequence[str], size: int, expected: Sequence[str]
) -> None:
    stand_in = early.StandIn("test/one", ())
    assert stand_in.prefer(["c", "b", "a"], must, size) == expected
