"""Measured and expected loads are read from annotations; what cannot be is ignored and named."""

from pathlib import Path

import msgspec
import pytest

from alnair.kube.objects import wire
from alnair.kube.objects.load_annotations import (
    Expectation,
    project_agent_lease,
    read_expected,
    read_loads,
)
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model import api_types, names
from alnair.model.nodes import Gpu, GpuLoad

GOLDEN = Path(__file__).parents[3] / "golden"
GPUS = (Gpu("GPU-0", 0, "P100", 16384),)
NOON = 1795262400.0


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.json").read_text().strip()


def load(**changes: object) -> str:
    document = msgspec.json.decode(golden("gpu-load"))
    return msgspec.json.encode({**document, **changes}).decode()


def test_the_golden_files_are_what_the_types_write() -> None:
    for name, kind in (("gpu-load", api_types.GpuLoadAnnotation), ("expected", api_types.Expected)):
        document = msgspec.json.decode(golden(name), type=kind)
        assert msgspec.json.encode(document).decode() == golden(name)


def test_a_load_is_read_from_the_golden_file() -> None:
    loads, ignored = read_loads({names.GPU_LOAD + "0": golden("gpu-load")}, GPUS)
    assert not ignored
    assert loads == (GpuLoad("GPU-0", 63.5, 10240, NOON),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (load(util=101), "<= 100"),
        (load(util=-1), ">= 0"),
        (load(util="high"), "Expected `float`"),
        (load(memory_used_mib=20000), "more than the 16384 MiB"),
        (load(uuid="GPU-9"), "has no GPU GPU-9"),
        (load(t="yesterday"), "is not a time"),
        (load(v=2), "version 2 is not known"),
        ("{", "truncated"),
        ("[" * 20_000, ""),
    ],
)
def test_an_absurd_load_is_ignored_and_named(text: str, why: str) -> None:
    loads, ignored = read_loads({names.GPU_LOAD + "0": text}, GPUS)
    assert loads == ()
    assert ignored.startswith("annotation ai.centaurus.io/gpu-0 is ignored: ")
    assert why in ignored


def test_annotations_with_like_names_are_not_loads() -> None:
    others = {names.GPU_STATIC: "x", names.GPU_ASSIGNMENT: "x", names.GPU_MODELS: "x"}
    assert read_loads(others, GPUS) == ((), "")


def test_a_node_names_the_lease_of_its_agent() -> None:
    annotations = {
        names.GPU_STATIC: (GOLDEN / "gpu-static.json").read_text(),
        names.GPU_LOAD + "0": golden("gpu-load"),
    }
    node = project_node(wire.NodeWire(wire.ObjectMeta(name="n", annotations=annotations)))
    assert node.loads[0].util == 63.5
    assert node.agent_lease == "alnair-agent-n"
    annotations[names.AGENT_LEASE] = "alnair-agent-sim"
    node = project_node(wire.NodeWire(wire.ObjectMeta(name="n", annotations=annotations)))
    assert node.agent_lease == "alnair-agent-sim"
    lease = wire.LeaseWire(wire.ObjectMeta(), wire.LeaseSpecWire("2026-11-21T12:00:00.000000Z"))
    assert project_agent_lease(lease) == NOON


def test_what_a_pod_is_expected_to_need_is_part_of_its_class() -> None:
    annotations = {names.EXPECTED: golden("expected")}
    assert read_expected(annotations) == Expectation(35.0, 8192, 7200.0)
    project = PodProjector()
    meta = wire.ObjectMeta(name="p", namespace="d", uid="1", annotations=annotations)
    pod = project(wire.PodWire(meta, wire.PodSpecWire()))
    assert (pod.spec.expected_util, pod.spec.expected_memory_mib) == (35.0, 8192)
    assert pod.time_limit == 7200
    bounded = wire.PodSpecWire(active_deadline_seconds=60)
    assert project(wire.PodWire(meta, bounded)).time_limit == 60, "what is enforced goes before"


def kind(*, gpu: bool = True, **meta: object) -> str:
    """The kind of a pod that has a slice of a GPU, as the scheduler has it."""
    node = str(meta.pop("node", ""))
    limits = {names.VGPU_MEMORY: "100"} if gpu else {}
    container = wire.Container("main", resources=wire.ResourceRequirements(limits, limits))
    about = wire.ObjectMeta(name="p", namespace="d", uid="1", **meta)  # type: ignore[arg-type]
    spec = wire.PodSpecWire(containers=[container], node_name=node)
    return PodProjector()(wire.PodWire(about, spec)).spec.workload


def test_what_a_pod_computes_is_its_own_word_or_what_its_agent_has_seen() -> None:
    said, seen = {names.WORKLOAD_KIND: "resnet (batch 64)"}, {names.WORKLOAD: golden("workload")}
    assert kind(annotations=said) == "resnet (batch 64)"
    assert kind(labels={names.WORKLOAD_KIND: "resnet"}) == "resnet"
    assert kind(annotations={**said, **seen}, node="n") == "resnet (batch 64)"
    assert kind(annotations=seen, node="n") == "input-bound"
    assert kind(annotations=seen) == "", "it is of a run before"
    assert kind(annotations={names.WORKLOAD: "{"}, node="n") == ""
    assert kind(annotations=said, gpu=False) == "", "and makes no class of its own"


def test_an_unreadable_expectation_is_ignored_and_the_pod_goes_on() -> None:
    annotations = {names.EXPECTED: '{"v":1,"t":"","util":170}'}
    meta = wire.ObjectMeta(name="p", namespace="d", uid="1", annotations=annotations)
    pod = PodProjector()(wire.PodWire(meta, wire.PodSpecWire()))
    assert not pod.problem
    assert pod.spec.expected_util == 0
    assert "expected is ignored" in pod.ignored
