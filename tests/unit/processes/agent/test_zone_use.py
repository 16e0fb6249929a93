"""What the kubelet says that containers hold, by NUMA zone."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from alnair.model import names
from alnair.node.kubelet.api.podresources_pb2 import ListPodResourcesResponse
from alnair.node.kubelet.pod_resources import PodResources
from alnair.node.numa_nodes import NumaNode
from alnair.processes.agent.numa_report import ZoneUse
from alnair.processes.agent.zone_use import KubeletZoneUse, zone_use
from kit.described_gpus import gpu, inventory
from kit.kubelet_sockets import short_folder

GIB = 1 << 30
ZONES = (NumaNode(0, frozenset(range(4))), NumaNode(1, frozenset(range(4, 8))))
GPUS = inventory(gpu(0), gpu(1), gpu(2), gpu(3))


def answer(*pods: dict[str, object]) -> ListPodResourcesResponse:
    return json_format.ParseDict({"podResources": pods}, ListPodResourcesResponse())


def use(*pods: dict[str, object], problems: dict[str, str] | None = None) -> ZoneUse:
    return zone_use(answer(*pods), ZONES, GPUS, problems or {})


def pod(name: str, *containers: dict[str, object]) -> dict[str, object]:
    return {"namespace": "default", "name": name, "containers": containers}


def devices(resource: str, *ids: str) -> dict[str, object]:
    return {"resourceName": resource, "deviceIds": ids}


def memory(gib: int, *nodes: int, kind: str = "memory") -> dict[str, object]:
    topology = {"nodes": [{"ID": node} for node in nodes]}
    return {"memoryType": kind, "size": gib * GIB, "topology": topology}


def test_cpus_memory_and_gpus_are_taken_from_their_zones() -> None:
    found = use(
        pod(
            "train",
            {
                "cpuIds": [0, 1, 4],
                "memory": [memory(2, 0), memory(1, 0, kind="hugepages-2Mi")],
                "devices": [devices(names.GPU, "GPU-0", "GPU-2"), devices("other.com/card", "1")],
            },
            {"cpuIds": [5], "devices": [devices(names.GPU, "GPU-3")]},
        ),
        pod("web"),
    )
    assert found.used == {
        0: {"cpu": 2000, "memory": 2 * GIB, names.GPU: 1},
        1: {"cpu": 2000, names.GPU: 2},
    }
    assert found.pods == (("default", "train"), ("default", "web"))


def test_memory_in_several_zones_is_free_in_none_of_them() -> None:
    assert use(pod("large", {"memory": [memory(3, 0, 1)]})).used == {
        0: {"memory": 3 * GIB},
        1: {"memory": 3 * GIB},
    }


def test_what_is_in_no_zone_is_taken_from_none() -> None:
    found = use(
        pod(
            "odd",
            {
                "cpuIds": [99],
                "memory": [memory(1, 7), memory(1)],
                "devices": [devices(names.GPU, "GPU-gone"), devices(names.VGPU, "slot-1")],
            },
        )
    )
    assert found.used == {0: {}, 1: {}}


def test_an_unhealthy_gpu_takes_nothing_of_the_healthy_ones() -> None:
    held = pod("train", {"devices": [devices(names.GPU, "GPU-0", "GPU-2")]})
    assert use(held, problems={"GPU-0": "XID 79"}).used == {0: {}, 1: {names.GPU: 1}}


def test_mig_devices_are_where_their_gpu_is() -> None:
    cut = inventory(gpu(0, cut=["1g.10gb", "1g.10gb"]), gpu(2, cut=["2g.20gb"]))
    small, large = names.MIG_PREFIX + "1g.10gb", names.MIG_PREFIX + "2g.20gb"
    held = answer(
        pod("a", {"devices": [devices(small, "MIG-0-1", "MIG-0-2"), devices(large, "MIG-2-1")]})
    )
    assert zone_use(held, ZONES, cut).used == {0: {small: 2}, 1: {large: 1}}
    assert zone_use(held, ZONES, cut, {"GPU-0": "XID 79"}).used == {0: {}, 1: {large: 1}}


@pytest.fixture
def socket() -> Iterator[Path]:
    """Of a kubelet."""
    with short_folder() as folder:
        yield folder / "kubelet.sock"


@asynccontextmanager
async def kubelet(socket: Path, says: ListPodResourcesResponse | None) -> AsyncIterator[None]:
    """A kubelet that answers with this, or with an error."""

    async def listing(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        if says is None:
            await context.abort(grpc.StatusCode.INTERNAL, "no idea")
        return says.SerializeToString()

    handler = grpc.unary_unary_rpc_method_handler(listing)
    service = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler})
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((service,))
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


async def test_what_is_used_is_what_the_kubelet_says_now(socket: Path) -> None:
    held = pod("train", {"cpuIds": [0], "devices": [devices(names.GPU, "GPU-0", "GPU-1")]})
    async with PodResources(socket) as resources, kubelet(socket, answer(held)):
        ask = KubeletZoneUse(resources, lambda: GPUS, lambda: {"GPU-1": "XID 79"})
        assert await ask(ZONES) == ZoneUse(
            {0: {"cpu": 1000, names.GPU: 1}, 1: {}}, (("default", "train"),)
        )
        assert len(await resources.list()) == 1


async def test_of_a_kubelet_that_does_not_answer_nothing_is_known(socket: Path) -> None:
    async with PodResources(socket) as resources, kubelet(socket, None):
        assert await KubeletZoneUse(resources, lambda: GPUS, dict)(ZONES) is None
