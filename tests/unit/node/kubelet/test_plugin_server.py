"""One resource, served to a kubelet over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from alnair.node.kubelet.api import deviceplugin_pb2 as api
from alnair.node.kubelet.checkpoint import read
from alnair.node.kubelet.plugin_server import PluginDevice, PluginServer
from kit.device_plugin import Plugin
from kit.kubelet_sockets import PATIENCE, Kubelet

NAME = "alnair-test-thing.sock"


@asynccontextmanager
async def registered(kubelet: Kubelet, plugin: Plugin) -> AsyncIterator[PluginServer]:
    await kubelet.start()
    server = PluginServer(kubelet.plugins, plugin)
    await server.serve()
    await server.register()
    await kubelet.registered(plugin.resource)
    try:
        yield server
    finally:
        await server.stop()


def listen(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    return found


async def test_a_container_is_given_what_the_plugin_prefers_and_asked_for_at_its_start(
    kubelet: Kubelet,
) -> None:
    plugin = Plugin()
    async with registered(kubelet, plugin) as server:
        assert server.watched == 1
        endpoint = kubelet.endpoints[plugin.resource]
        assert endpoint.options.pre_start_required
        assert endpoint.options.get_preferred_allocation_available
        held = await kubelet.admit("uid-one", "main", plugin.resource)
        assert held.ids == ["b"]
        (found,) = read(kubelet.plugins)
        assert (found.pod_uid, found.ids, found.device) == (
            "uid-one",
            frozenset({"b"}),
            "test/kind=b",
        )
        await kubelet.pre_start(held)
    assert plugin.starts == [frozenset({"b"})]


async def test_devices_are_described_with_health_and_nearness(kubelet: Kubelet) -> None:
    plugin = Plugin()
    plugin.now = [PluginDevice("a", is_healthy=False, numa=1), PluginDevice("b")]
    async with registered(kubelet, plugin):
        assert kubelet.endpoints[plugin.resource].lists == [
            [
                api.Device(
                    ID="a",
                    health="Unhealthy",
                    topology=api.TopologyInfo(nodes=[api.NUMANode(ID=1)]),
                ),
                api.Device(ID="b", health="Healthy"),
            ]
        ]


async def test_changes_of_devices_are_sent_and_nothing_else(kubelet: Kubelet) -> None:
    plugin = Plugin()
    async with registered(kubelet, plugin) as server:
        sent = kubelet.endpoints[plugin.resource].lists
        server.tell()  # nothing changed
        plugin.now = [PluginDevice("a")]
        server.tell()
        await kubelet.until(lambda: len(sent) > 1)
        plugin.now = []
        server.tell()
        server.tell()
        await kubelet.until(lambda: sent[-1] == [])
    assert [[one.ID for one in devices] for devices in sent] == [["a", "b"], ["a"], []]


async def test_the_devices_of_many_gpus_fit_into_what_a_kubelet_takes(kubelet: Kubelet) -> None:
    plugin = Plugin()
    plugin.now = [PluginDevice(f"slot-{i}") for i in range(1600)]
    async with registered(kubelet, plugin):
        assert len(kubelet.endpoints[plugin.resource].healthy()) == 1600
        held = await kubelet.admit("uid-one", "main", plugin.resource, 16)
        assert len(held.ids) == 16


async def test_a_refused_start_tells_the_kubelet_why(kubelet: Kubelet) -> None:
    plugin = Plugin()
    async with registered(kubelet, plugin):
        held = await kubelet.admit("uid-one", "main", plugin.resource)
        plugin.refusal = "GPU 3 is another pod's, 100 % — whole"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await kubelet.pre_start(held)
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert caught.value.details() == plugin.refusal
        plugin.refusal = ""
        await kubelet.pre_start(held)


async def test_one_that_stops_leaves_no_socket(kubelet: Kubelet) -> None:
    plugin = Plugin()
    async with registered(kubelet, plugin) as server:
        endpoint = kubelet.endpoints[plugin.resource]
        assert server.is_there
        hung_up = asyncio.Event()
        server.on_hang_up = hung_up.set
        await server.stop()
        assert not server.is_there
        await kubelet.until(lambda: endpoint.stopped)
        await server.stop()  # again
        names = {path.name for path in kubelet.plugins.iterdir()}
        assert names == {"kubelet.sock", "kubelet_internal_checkpoint"}
        async with asyncio.timeout(PATIENCE):
            await hung_up.wait()
        assert server.watched == 0


async def test_one_that_stops_leaves_the_socket_of_another(kubelet: Kubelet) -> None:
    server = PluginServer(kubelet.plugins, Plugin())
    await server.serve()
    path = kubelet.plugins / NAME
    path.unlink()
    assert not server.is_there
    with listen(path):
        assert not server.is_there
        await server.stop()
        assert [one.name for one in kubelet.plugins.iterdir()] == [NAME]


async def test_the_socket_of_an_agent_that_was_killed_is_replaced(kubelet: Kubelet) -> None:
    listen(kubelet.plugins / NAME).close()
    async with registered(kubelet, Plugin()) as server:
        assert server.is_there


async def test_serving_again_lets_the_first_socket_go(kubelet: Kubelet) -> None:
    plugin = Plugin()
    async with registered(kubelet, plugin) as server:
        first = kubelet.endpoints[plugin.resource]
        await server.serve()
        await kubelet.until(lambda: first.stopped)
        assert server.is_there
        await server.register()
        await kubelet.registered(plugin.resource)
        assert kubelet.registrations == [plugin.resource] * 2


async def test_a_folder_that_is_not_there_is_said(kubelet: Kubelet) -> None:
    server = PluginServer(kubelet.plugins / "none", Plugin())
    with pytest.raises(OSError, match=r"none/alnair-test-thing\.sock cannot be served"):
        await server.serve()
    assert not server.is_there
    await server.stop()


async def test_a_socket_that_cannot_have_its_place_is_not_left(kubelet: Kubelet) -> None:
    (kubelet.plugins / NAME / "inside").mkdir(parents=True)
    server = PluginServer(kubelet.plugins, Plugin())
    with pytest.raises(OSError, match=r"alnair-test-thing\.sock"):
        await server.serve()
    assert [path.name for path in kubelet.plugins.iterdir()] == [NAME]


async def test_without_a_kubelet_registering_fails(kubelet: Kubelet) -> None:
    server = PluginServer(kubelet.plugins, Plugin())
    await server.serve()
    with pytest.raises(grpc.aio.AioRpcError):
        await server.register()
    await server.stop()


async def test_how_long_calls_took_is_counted_by_method_and_result(kubelet: Kubelet) -> None:
    plugin = Plugin()
    async with registered(kubelet, plugin) as server:
        held = await kubelet.admit("uid-one", "main", plugin.resource)
        await kubelet.pre_start(held)
        plugin.refusal = "it may not"
        with pytest.raises(grpc.aio.AioRpcError, match="it may not"):
            await kubelet.pre_start(held)
        counts = {what: times.count for what, times in server.times.by.items()}
    assert counts == {
        ("GetDevicePluginOptions", "ok"): 1,
        ("GetPreferredAllocation", "ok"): 1,
        ("Allocate", "ok"): 1,
        ("PreStartContainer", "ok"): 1,
        ("PreStartContainer", "refused"): 1,
    }
