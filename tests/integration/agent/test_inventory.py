"""What an agent tells of its GPUs stays true on a real API server; others' labels stay theirs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.informer import Change, Informer
from alnair.kube.objects.load_annotations import project_agent_lease
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.wire import LeaseWire, NodeWire
from alnair.kube.resources import LEASES, NODES
from alnair.model import names
from alnair.model.nodes import Node
from alnair.processes.agent import agent_lease
from alnair.processes.agent import inventory as publishing
from alnair.processes.agent.agent_lease import AgentLease
from alnair.processes.agent.inventory import InventoryPublisher
from alnair.processes.agent.node_object import FIELD_MANAGER
from alnair.scheduler.state.gpus.node_gpus import gpus_of
from kit.described_gpus import DescribedDriver, gpu, inventory
from kit.live.scheduler_process import eventually
from kit.manual_clock import running

NODE = "tells-of-gpus"
PRODUCT, MEMORY = names.GPU_MODEL_LABEL, "nvidia.com/gpu.memory"
BOTH = inventory(gpu(0), gpu(1))
RESOURCES = {names.VGPU_MEMORY: 2 * 81559, names.VGPU_COMPUTE: 200}


def manifest(**labels: str) -> dict[str, Any]:
    metadata = {"name": NODE, "labels": {"own": "label", **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


@pytest.fixture
async def node(client: Client) -> AsyncIterator[str]:
    await client.create(NODES, manifest())
    yield NODE
    with contextlib.suppress(NotFound):
        await client.delete(NODES, NODE)


async def read(client: Client) -> dict[str, Any]:
    return await client.get(NODES, NODE)


async def tells(client: Client, holds: Callable[[dict[str, Any]], bool], what: str) -> None:
    async def check() -> bool:
        return holds(await read(client))

    await eventually(check, what=what)


def has_resources(node: dict[str, Any], expected: dict[str, int] = RESOURCES) -> bool:
    found = project_resources(node)
    return found == [expected, expected]


def project_resources(node: dict[str, Any]) -> list[dict[str, int]]:
    status = node.get("status") or {}
    return [
        {name: int(amounts.get(name, -1)) for name in names.SLICE_RESOURCES}
        for amounts in (status.get("capacity") or {}, status.get("allocatable") or {})
    ]


async def set_by(client: Client, manager: str, labels: dict[str, str]) -> None:
    """Label the node as this writer does."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": labels},
    }
    await client.apply(NODES, node, field_manager=manager)


async def test_the_scheduler_reads_what_the_agent_tells(client: Client, node: str) -> None:
    publisher = InventoryPublisher(client, node, DescribedDriver(BOTH), soft_factor=1.5)
    async with running(publisher.run()):
        expected = {**RESOURCES, names.VGPU_COMPUTE: 300}
        await tells(client, lambda node: has_resources(node, expected), "resources are there")
    seen = project_node(await client.get(NODES.typed(NodeWire), node))
    assert seen.problem == ""
    assert [(g.uuid, g.index, g.model, g.memory_mib, g.numa, g.links) for g in seen.gpus] == [
        ("GPU-0", 0, "NVIDIA-H100-80GB-HBM3", 81559, 0, ((1, "NV18"),)),
        ("GPU-1", 1, "NVIDIA-H100-80GB-HBM3", 81559, 0, ((0, "NV18"),)),
    ]
    assert seen.allocatable.items() >= expected.items()
    assert (
        seen.labels.items()
        >= {
            "own": "label",
            PRODUCT: "NVIDIA-H100-80GB-HBM3",
            MEMORY: "81559",
            "nvidia.com/gpu.count": "2",
            "nvidia.com/cuda.driver-version.full": "615.36.01",
            "nvidia.com/cuda.driver-version.major": "615",
            "nvidia.com/cuda.driver-version.minor": "36",
            "nvidia.com/cuda.driver-version.revision": "01",
        }.items()
    )


async def test_a_label_of_another_stays_theirs_and_names_the_model(
    client: Client, node: str
) -> None:
    label = {PRODUCT: "NVIDIA-H100-80GB-HBM3-SHARED"}  # by an update, not by server-side apply
    await client.merge_patch(NODES, node, {"metadata": {"labels": label}})
    async with running(InventoryPublisher(client, node, DescribedDriver(BOTH)).run()):
        await tells(client, has_resources, "resources are there")
        found = await read(client)
        assert found["metadata"]["labels"][PRODUCT] == "NVIDIA-H100-80GB-HBM3-SHARED"
        assert found["metadata"]["labels"][MEMORY] == "81559"
        assert (
            '"NVIDIA-H100-80GB-HBM3-SHARED"' in found["metadata"]["annotations"][names.GPU_STATIC]
        )

        # It comes later, over a label that was ours: from then on it is theirs.
        await set_by(client, "nfd-master", {PRODUCT: "H100", MEMORY: "80000"})
        said = '"model":"H100"'
        await tells(
            client,
            lambda node: said in node["metadata"]["annotations"][names.GPU_STATIC],
            "the model has the label's new spelling",
        )
        labels = (await read(client))["metadata"]["labels"]
        assert (labels[PRODUCT], labels[MEMORY]) == ("H100", "80000")

        # It is taken off the node: the labels are ours again.
        await set_by(client, "nfd-master", {})
        await tells(
            client,
            lambda node: (
                node["metadata"]["labels"].get(PRODUCT) == "NVIDIA-H100-80GB-HBM3"
                and node["metadata"]["labels"].get(MEMORY) == "81559"
            ),
            "our labels are back",
        )


async def test_a_label_that_another_sets_in_the_same_moment_stays(
    client: Client, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Client(client.connection) as own:
        get, raced = own.get, list[str]()

        async def and_then_another_writes(*args: Any) -> Any:
            found = await get(*args)
            if not raced:
                raced.append(node)
                await set_by(client, "nfd-master", {PRODUCT: "H100"})
            return found

        monkeypatch.setattr(own, "get", and_then_another_writes)
        async with running(InventoryPublisher(own, node, DescribedDriver(BOTH)).run()):
            await tells(client, has_resources, "resources are there")
    assert raced
    found = (await read(client))["metadata"]
    assert found["labels"][PRODUCT] == "H100"
    assert '"model":"H100"' in found["annotations"][names.GPU_STATIC]


async def test_edits_are_repaired(client: Client, node: str) -> None:
    async with running(InventoryPublisher(client, node, DescribedDriver(BOTH)).run()):
        await tells(client, has_resources, "resources are there")
        before = await read(client)
        text = before["metadata"]["annotations"][names.GPU_STATIC]
        edits = {
            "labels": {PRODUCT: None, "own": "other"},
            "annotations": {names.GPU_STATIC: '{"v":1,"t":"","gpus":[]}'},
        }
        await client.merge_patch(NODES, node, {"metadata": edits})
        await tells(
            client,
            lambda node: (
                "GPU-1" in node["metadata"]["annotations"][names.GPU_STATIC]
                and PRODUCT in node["metadata"]["labels"]
            ),
            "the edits are repaired",
        )
        after = await read(client)
        assert after["metadata"]["labels"]["own"] == "other"
        said = after["metadata"]["annotations"][names.GPU_STATIC]
        assert said.split('"gpus"')[1] == text.split('"gpus"')[1]


async def test_an_agent_that_starts_again_writes_nothing(
    client: Client, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(InventoryPublisher(client, node, DescribedDriver(BOTH)).run()):
        await tells(client, has_resources, "resources are there")
    version = (await read(client))["metadata"]["resourceVersion"]
    monkeypatch.setattr(publishing, "EVERY", 0.05)
    looks: list[int] = []
    looked = asyncio.Event()

    def problems() -> dict[str, str]:
        looks.append(1)
        if len(looks) == 5:
            looked.set()
        return {}

    publisher = InventoryPublisher(client, node, DescribedDriver(BOTH), problems=problems)
    async with running(publisher.run()), asyncio.timeout(60):
        await looked.wait()
    assert (await read(client))["metadata"]["resourceVersion"] == version


async def test_resources_come_back_after_a_kubelet_zeroed_them(client: Client, node: str) -> None:
    async with running(InventoryPublisher(client, node, DescribedDriver(BOTH)).run()):
        await tells(client, has_resources, "resources are there")
        zero = dict.fromkeys(RESOURCES, "0")
        patch = {"status": {"capacity": {**zero, "cpu": "8"}, "allocatable": zero}}
        await client.merge_patch(NODES, node, patch, subresource="status")
        await tells(client, has_resources, "resources are back")
        assert (await read(client))["status"]["capacity"]["cpu"] == "8"

        # The node is removed, and its kubelet makes it anew.
        await client.delete(NODES, node)
        await client.create(NODES, manifest())
        await tells(client, has_resources, "the new object has all")
        assert names.GPU_STATIC in (await read(client))["metadata"]["annotations"]


async def test_unhealthy_gpus_and_those_in_mig_mode_offer_no_slices(
    client: Client, node: str
) -> None:
    problems: dict[str, str] = {}
    driver = DescribedDriver(BOTH)
    async with running(InventoryPublisher(client, node, driver, problems=lambda: problems).run()):
        await tells(client, has_resources, "resources are there")
        problems["GPU-1"] = "it does not answer"
        one = {names.VGPU_MEMORY: 81559, names.VGPU_COMPUTE: 100}
        await tells(client, lambda node: has_resources(node, one), "the sick one is taken out")
        said = '"problem":"it does not answer"'
        await tells(
            client,
            lambda node: said in node["metadata"]["annotations"][names.GPU_STATIC],
            "why is told after that, so that the soft factor of the other never seems larger",
        )
        found = project_node(await client.get(NODES.typed(NodeWire), node))
        assert [g.problem for g in found.gpus] == ["", "it does not answer"]
        driver.inventory = inventory(gpu(0, mig=True), gpu(1))
        none = dict.fromkeys(RESOURCES, 0)
        await tells(client, lambda node: has_resources(node, none), "so is one in MIG mode")
        await tells(
            client,
            lambda node: "GPU-0" not in node["metadata"]["annotations"][names.GPU_STATIC],
            "it is no longer described",
        )
        found = project_node(await client.get(NODES.typed(NodeWire), node))
        assert [g.uuid for g in found.gpus] == ["GPU-1"]


async def test_a_node_is_closed_by_its_gpus_and_opened_by_the_next_agent(
    client: Client, node: str
) -> None:
    def problems(found: dict[str, Any]) -> int:
        return found["metadata"]["annotations"][names.GPU_STATIC].count("it ends")

    before = InventoryPublisher(client, node, DescribedDriver(BOTH), soft_factor=1.5)
    resources = {**RESOURCES, names.VGPU_COMPUTE: 300}
    async with running(before.run()):
        await tells(client, lambda node: has_resources(node, resources), "resources are there")
        await before.close("it ends")
        found = await read(client)
        assert problems(found) == 2
        assert has_resources(found, resources), "or the kubelet would refuse who is on the way"
        # Whoever has more than a GPU's time keeps it in the books.
        assert gpus_of(project_node(await client.get(NODES.typed(NodeWire), node)))[1] == 1.5
    after = InventoryPublisher(client, node, DescribedDriver(BOTH), soft_factor=1.5)
    async with running(after.run()):
        await tells(client, lambda node: not problems(node), "the next one opens it")


async def test_a_node_is_closed_at_once_though_another_has_just_written(
    client: Client, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "PAUSE", 60.0)
    async with Client(client.connection) as own:
        publisher, get = InventoryPublisher(own, node, DescribedDriver(BOTH)), own.get
        others = iter(range(3))

        async def and_then_another_writes(*args: Any) -> Any:
            found = await get(*args)
            if (one := next(others, None)) is not None:
                await set_by(client, "other", {"other": str(one)})
            return found

        async with running(publisher.run()):
            await tells(client, has_resources, "resources are there")
            monkeypatch.setattr(own, "get", and_then_another_writes)
            await asyncio.wait_for(publisher.close("it ends"), 60)
    assert "it ends" in (await read(client))["metadata"]["annotations"][names.GPU_STATIC]
    assert next(others, None) is None, "each of these writes was in the way"


async def test_at_no_moment_does_a_gpus_health_seem_to_change_the_soft_factor(
    client: Client, node: str
) -> None:
    seen: list[float] = []

    def hear(change: Change[Node]) -> None:
        if change.new is not None:
            seen.append(gpus_of(change.new)[1])

    typed = NODES.typed(NodeWire)
    informer = Informer(client, typed, project_node, hear, field_selector=f"metadata.name={node}")
    problems: dict[str, str] = {}
    publisher = InventoryPublisher(client, node, DescribedDriver(BOTH), problems=lambda: problems)
    async with running(informer.run()), running(publisher.run()):
        for sick in ({}, {"GPU-1": "XID 79"}, {}):
            problems = sick

            def is_told(found: dict[str, Any], count: int = len(sick)) -> bool:
                amounts = {**RESOURCES, names.VGPU_COMPUTE: 200 - 100 * count}
                amounts[names.VGPU_MEMORY] -= 81559 * count
                text = found["metadata"].get("annotations", {}).get(names.GPU_STATIC, "")
                return has_resources(found, amounts) and text.count("problem") == count

            await tells(client, is_told, f"{len(sick)} are sick")

        async def are_seen() -> bool:
            return len(seen) >= 6

        # The watch may tell of the last ones a little later than a read does.
        await eventually(are_seen, what="each change is two writes")
    assert set(seen) == {1.0}


async def test_the_lease_is_renewed_while_the_driver_answers(
    client: Client, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_lease, "EVERY", 0.1)
    name = names.AGENT_LEASE_PREFIX + node
    driver = DescribedDriver(BOTH)

    async def renewed() -> float:
        return project_agent_lease(await client.get(LEASES.typed(LeaseWire), name, names.NAMESPACE))

    async def is_there() -> bool:
        with contextlib.suppress(NotFound):
            return await renewed() > 0
        return False

    async with running(AgentLease(client, node, driver).run()):
        await eventually(is_there)
        first = await renewed()

        async def is_later() -> bool:
            return await renewed() > first

        await eventually(is_later)
        lease = await client.get(LEASES, name, names.NAMESPACE)
        assert (
            lease["metadata"]["ownerReferences"][0]["uid"]
            == (await read(client))["metadata"]["uid"]
        )
        assert lease["spec"]["leaseDurationSeconds"] == 40
        assert datetime.fromisoformat(lease["spec"]["renewTime"]).tzinfo

    assert await renewed() > first, "it is left to expire"
    await client.delete(LEASES, name, names.NAMESPACE)


async def test_another_writer_is_known_by_the_fields_that_it_wrote(
    client: Client, node: str
) -> None:
    """The same value by two writers is both's: it stays the other's when we let go."""
    await set_by(client, "somebody", {MEMORY: "81559"})
    async with running(InventoryPublisher(client, node, DescribedDriver(BOTH)).run()):
        await tells(client, has_resources, "resources are there")
    written = {
        entry["manager"]: entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {})
        for entry in (await read(client))["metadata"]["managedFields"]
        if not entry.get("subresource")
    }
    assert f"f:{MEMORY}" in written["somebody"]
    assert f"f:{MEMORY}" not in written[FIELD_MANAGER]
    assert f"f:{PRODUCT}" in written[FIELD_MANAGER]
