"""Which container holds which ids, by the kubelet's pod-resources API."""

import asyncio

import grpc
import pytest

from alnair.node.kubelet import pod_resources
from alnair.node.kubelet.pod_resources import HeldDevices, PodResources, PodResourcesError
from kit.kubelet_sockets import Kubelet, slots


async def test_what_containers_hold_is_listed_by_resource(kubelet: Kubelet) -> None:
    await kubelet.start()
    kubelet.give("uid-one", "main", "test/thing", slots(["a", "b"]))
    kubelet.give("uid-two", "side", "test/other", {0: ["c"], 1: ["d"]})
    kubelet.give("uid-two", "prepare", "test/other", slots(["c"]), init=True)
    async with PodResources(kubelet.resources) as resources:
        assert await resources.list() == [
            HeldDevices("team", "one", "main", "test/thing", frozenset({"a", "b"})),
            HeldDevices("team", "two", "side", "test/other", frozenset({"c"})),
            HeldDevices("team", "two", "side", "test/other", frozenset({"d"})),
        ]


async def test_a_node_with_many_pods_may_have_a_long_answer(kubelet: Kubelet) -> None:
    await kubelet.start()
    ids = [f"{i:0>60}" for i in range(100_000)]  # more than the 4 MiB of gRPC's default
    kubelet.give("uid-one", "main", "test/thing", slots(ids))
    async with PodResources(kubelet.resources) as resources:
        (found,) = await resources.list()
        assert len(found.ids) == len(ids)


async def test_a_kubelet_that_is_not_there_is_waited_for(kubelet: Kubelet) -> None:
    async with PodResources(kubelet.resources) as resources:
        listing = asyncio.create_task(resources.list())
        await kubelet.start()
        assert await listing == []
        await kubelet.restart()
        assert await resources.list() == []


async def test_a_kubelet_that_goes_while_it_is_asked_is_asked_again(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kubelet.start()
    async with PodResources(kubelet.resources) as resources:
        ask, asked = resources._list, []

        async def broken_once(request: object, **how: object) -> object:
            asked.append(request)
            if len(asked) == 1:
                none = grpc.aio.Metadata()
                raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, "broken pipe")
            return await ask(request, **how)

        monkeypatch.setattr(resources, "_list", broken_once)
        assert await resources.list() == []
    assert len(asked) == 2


async def test_a_kubelet_that_does_not_come_is_said(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_resources, "_PATIENCE", 0.05)
    async with PodResources(kubelet.resources) as resources:
        with pytest.raises(PodResourcesError, match="the kubelet does not say who holds which"):
            await resources.list()
