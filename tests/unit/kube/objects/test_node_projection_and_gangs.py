"""From nodes and PodGroups of the API to those that scheduling knows."""

import json
from typing import Any

import msgspec
import pytest

from alnair.kube.objects import wire
from alnair.kube.objects.node_projection import project_node
from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from alnair.kube.timestamps import timestamp
from alnair.model import names
from alnair.model.nodes import Gpu, Image, Node, Taint
from alnair.model.workload import Gang
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import make


def node(annotation: object = None, **allocatable: str) -> Node:
    document: dict[str, Any] = {
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {"allocatable": allocatable, "images": [{"names": ["x"], "sizeBytes": 1}]},
    }
    if annotation is not None:
        text = annotation if isinstance(annotation, str) else json.dumps(annotation)
        document["metadata"]["annotations"] = {names.GPU_STATIC: text}
    return project_node(msgspec.json.decode(json.dumps(document), type=wire.NodeWire))


def static(*gpus: dict[str, Any], v: int = 1) -> dict[str, Any]:
    return {"v": v, "t": "2026-01-01T00:00:00Z", "gpus": list(gpus)}


def described(index: int, /, **changes: Any) -> dict[str, Any]:
    return {"uuid": f"G{index}", "index": index, "model": "T4", "memory_mib": 15360, **changes}


def test_a_node_is_reduced_to_what_scheduling_needs() -> None:
    found = node(static(described(1), described(0, numa=0)), cpu="7910m", memory="64Gi", pods="110")
    assert found == Node(
        name="n",
        allocatable={"cpu": 7910, "memory": 64 * 2**30, "pods": 110},
        labels={"zone": "a"},
        taints=(Taint("k", "NoSchedule", ""),),
        unschedulable=True,
        gpus=(Gpu("G0", 0, "T4", 15360, 0), Gpu("G1", 1, "T4", 15360)),
        images=(Image(("x",), 1),),
    )


def test_a_node_that_says_nothing_has_nothing() -> None:
    found = project_node(msgspec.json.decode(b'{"metadata":{"name":"n"}}', type=wire.NodeWire))
    assert found == Node("n", {})


UNREADABLE = [
    ("not JSON", "{", "cannot be read"),
    ("an unknown version", static(described(0), v=2), "version 2 is not known"),
    ("a uuid twice", static(described(0), described(1, uuid="G0")), "occurs twice"),
    ("an index twice", static(described(0), described(0, uuid="G1")), "occurs twice"),
    ("negative memory", static(described(0, memory_mib=-1)), "cannot be read"),
    ("memory without end", static(described(0, memory_mib=10**400)), "cannot be read"),
    ("nested without end", f'{{"v":1,"x":{make.NESTED}}}', "cannot be read"),
    ("no uuid", static(described(0, uuid="")), "cannot be read"),
    ("text for a number", static(described(0, index="0")), "cannot be read"),
    ("no list", {"v": 1, "t": ""}, "cannot be read"),
]


@pytest.mark.parametrize(("why", "annotation", "words"), UNREADABLE)
def test_gpus_that_cannot_be_read_become_a_problem(
    why: str, annotation: object, words: str
) -> None:
    found = node(annotation, cpu="8")
    assert words in found.problem, why
    assert names.GPU_STATIC in found.problem
    assert found.gpus == ()
    assert found.allocatable == {"cpu": 8000}


@pytest.mark.parametrize(
    "asked",
    [make.spec(whole=1), make.spec(slice_mib=1024, compute=10), make.spec(whole=1, models="T4")],
)
def test_no_gpu_pod_goes_to_a_node_whose_gpus_cannot_be_read(asked: Any) -> None:
    bad = node("{", cpu="8", memory="64Gi", pods="110", **{names.GPU: "4"})
    allocatable = {**make.node(gpus=4).allocatable, **bad.allocatable}
    bad = msgspec.structs.replace(bad, allocatable=allocatable, taints=(), unschedulable=False)
    engine = Engine(profiles())
    pods = [make.pod("gpu", asked), make.pod("plain")]
    actions = engine.step([events.NodeChanged(bad), *map(events.PodChanged, pods)], 0.0)
    said = {a.pod.name: a for a in actions}
    assert said["gpu"].message == "0/1 nodes are available: 1 node(s) describe no GPUs."
    assert said["plain"].node == "n"


def test_a_quantity_that_cannot_be_read_leaves_nothing_to_place_on() -> None:
    found = node(cpu="8", memory="lots")
    assert found.problem.startswith("status.allocatable: 'lots' is not a quantity")
    assert found.allocatable == {}


def gang(annotation: str | None = None, **spec: object) -> Gang:
    document = {
        "metadata": {
            "name": "g",
            "namespace": "ns",
            "creationTimestamp": "1970-01-01T00:00:10Z",
            "annotations": {names.GANG_PLAN: annotation} if annotation else None,
        },
        "spec": spec,
    }
    return GangProjector("a/v1")(msgspec.json.decode(json.dumps(document), type=PodGroupWire))


def test_a_pod_group_and_its_plan_are_read() -> None:
    plan = {
        "v": 1,
        "t": "1970-01-01T00:01:00Z",
        "pods": {"p0": {"node": "n", "gpus": {"c": [0, 2]}}},
    }
    found = gang(json.dumps(plan), minMember=3, scheduleTimeoutSeconds=90)
    assert found == Gang(
        "ns", "g", 3, 10.0, 90, "a/v1", plan={"p0": ("n", {"c": [0, 2]})}, planned=60.0
    )


def test_a_pod_group_that_says_nothing_is_a_gang_of_one() -> None:
    assert gang() == Gang("ns", "g", 1, 10.0, 60, "a/v1")
    assert gang(minMember=-3).min_member == 1


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"v":1,"t":"","pods":[]}',
        '{"v":9,"t":"","pods":{}}',
        pytest.param(f'{{"v":1,"x":{make.NESTED}}}', id="nested without end"),
    ],
)
def test_a_plan_that_cannot_be_read_counts_as_none(text: str) -> None:
    assert gang(text).plan == {}


@pytest.mark.parametrize(
    ("text", "want"),
    [("1970-01-01T00:00:01Z", 1.0), ("1970-01-01T01:00:00.5+01:00", 0.5), ("", 0.0), ("soon", 0.0)],
)
def test_times_that_cannot_be_read_are_zero(text: str, want: float) -> None:
    assert timestamp(text) == want
