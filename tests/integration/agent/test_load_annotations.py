"""What the agent writes of measured load is what the scheduler reads, through a real API server."""

import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.load_annotations import read_loads
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import PodWire
from alnair.kube.resources import NODES, PODS
from alnair.kube.timestamps import timestamp
from alnair.model import names
from alnair.model.nodes import Gpu
from alnair.model.workload import Pod
from alnair.node.gpu_looks import GpuLook
from alnair.node.load import GpuHolder, GpusLoad
from alnair.node.nvml import NvmlGpu, Usage
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.load_annotations import LoadAnnotations
from alnair.processes.agent.node_object import FIELD_MANAGER
from alnair.scheduler.plugins.default_preemption import DefaultPreemption

NODE = "measured"
MIB = 1 << 20
GPUS = tuple(NvmlGpu(i, f"GPU-{i}", "T", 16384 * MIB) for i in range(2))
STATIC = tuple(Gpu(uuid=gpu.uuid, index=gpu.index, model="T", memory_mib=16384) for gpu in GPUS)
NOON = 1_795_348_800.0


@pytest.fixture
async def node(client: Client) -> AsyncIterator[None]:
    metadata = {"name": NODE, "annotations": {"mine": "stays"}}
    await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    yield
    with contextlib.suppress(NotFound):
        await client.delete(NODES, NODE)


async def annotations(client: Client) -> dict[str, str]:
    found: dict[str, str] = (await client.get(NODES, NODE))["metadata"]["annotations"]
    return found


async def read(client: Client, namespace: str) -> Pod:
    """The pod as the scheduler knows it."""
    raw = await client.raw("GET", PODS.item("train", namespace))
    return PodProjector()(msgspec.json.decode(raw, type=PodWire))


async def test_loads_and_idleness_come_to_the_scheduler(
    client: Client, node: None, namespace: str
) -> None:
    made = await client.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "train",
                "namespace": namespace,
                "annotations": {names.RECLAIMABLE: "idle"},
            },
            "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "none"}]},
        },
    )
    pod = OwningPod(namespace, "train", made["metadata"]["uid"], "main")
    load = GpusLoad({}, lambda: [GpuHolder(pod, ("GPU-1",))])
    gpus = list(GPUS)
    clock = [NOON]
    writer = LoadAnnotations(client, NODE, lambda: gpus, load, now=lambda: clock[0])

    for second in range(30):
        usages = {"GPU-0": Usage(5.0, 300 * MIB), "GPU-1": Usage(80.0, 4096 * MIB)}
        load.take(GpuLook(float(second), 1, usages, {}))
    await writer.write()
    found, ignored = read_loads(await annotations(client), STATIC)
    assert not ignored
    assert [(one.uuid, one.util, one.memory_used_mib, one.measured) for one in found] == [
        ("GPU-0", 5.0, 300, NOON),
        ("GPU-1", 80.0, 4096, NOON),
    ]
    assert (await read(client, namespace)).idle_since == 0.0

    # Its training is over; it sits there for eleven minutes.
    for second in range(30, 690):
        usages = {"GPU-0": Usage(5.0, 300 * MIB), "GPU-1": Usage(0.0, 4096 * MIB)}
        load.take(GpuLook(float(second), 1, usages, {}))
    clock[0] = NOON + 660
    await writer.write()
    known = await read(client, namespace)
    assert known.idle_since == timestamp("2026-11-22T12:00:01Z")
    assert DefaultPreemption().is_idle(known, clock[0])

    # The GPU is lost: neither its load nor the pod's idleness is known any more.
    for second in range(690, 700):
        load.take(GpuLook(float(second), 1, {"GPU-0": Usage(5.0, 300 * MIB)}, {"GPU-1": "lost"}))
    await writer.write()
    found, ignored = read_loads(await annotations(client), STATIC)
    assert ([one.uuid for one in found], ignored) == (["GPU-0"], "")
    assert (await read(client, namespace)).idle_since == 0.0

    # A new agent, on a node whose first GPU was taken out: what the old one wrote goes.
    gpus[:] = GPUS[1:]
    await LoadAnnotations(client, NODE, lambda: gpus, load).write()
    left = await annotations(client)
    assert read_loads(left, STATIC) == ((), "")
    assert left["mine"] == "stays"


async def test_a_node_that_was_deleted_is_not_made_anew(client: Client, node: None) -> None:
    load = GpusLoad({})
    writer = LoadAnnotations(client, NODE, lambda: GPUS, load)
    load.take(GpuLook(0.0, 1, {"GPU-0": Usage(5.0, 300 * MIB)}, {}))
    await writer.write()
    await client.delete(NODES, NODE)
    load.take(GpuLook(1.0, 1, {"GPU-0": Usage(95.0, 300 * MIB)}, {}))
    for _ in range(2):
        await writer.write()
    with pytest.raises(NotFound):
        await client.get(NODES, NODE)


async def test_no_writer_of_annotations_removes_what_another_wrote(
    client: Client, node: None, namespace: str
) -> None:
    spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "none"}]}
    made = await client.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "train", "namespace": namespace, "annotations": {"mine": "1"}},
            "spec": spec,
        },
    )
    uid = made["metadata"]["uid"]
    pod = OwningPod(namespace, "train", uid, "main")
    load = GpusLoad({}, lambda: [GpuHolder(pod, ("GPU-0",))])
    writer = LoadAnnotations(client, NODE, lambda: GPUS, load)
    managers = (FIELD_MANAGER, "alnair-agent-plugin", "alnair-controller-history")

    async def others_write() -> None:
        for manager in managers:
            for kind, resource, meta in (
                ("Node", NODES, {"name": NODE}),
                ("Pod", PODS, {"name": "train", "namespace": namespace, "uid": uid}),
            ):
                wanted = {**meta, "annotations": {f"test/{manager}": "1"}}
                await client.apply(
                    resource,
                    {"apiVersion": "v1", "kind": kind, "metadata": wanted},
                    field_manager=manager,
                )

    async def both() -> list[set[str]]:
        objects = await client.get(NODES, NODE), await client.get(PODS, "train", namespace)
        return [set(one["metadata"]["annotations"]) for one in objects]

    theirs = {"mine", *(f"test/{manager}" for manager in managers)}
    await others_write()
    for second in range(30):
        load.take(GpuLook(float(second), 1, {"GPU-0": Usage(5.0, 300 * MIB)}, {}))
    await writer.write()
    await others_write()
    of_node, of_pod = await both()
    assert of_node >= theirs | {f"{names.GPU_LOAD}0"}
    assert of_pod >= theirs | {names.UTILIZATION}
    # What the profiler wrote goes when it is no more, and nothing else does.
    for second in range(30, 50):
        load.take(GpuLook(float(second), 1, {}, {"GPU-0": "lost"}))
    await LoadAnnotations(client, NODE, lambda: GPUS, load).write()
    of_node, of_pod = await both()
    assert of_node >= theirs
    assert of_pod >= theirs
    assert not {f"{names.GPU_LOAD}0"} & of_node
    assert names.UTILIZATION not in of_pod
