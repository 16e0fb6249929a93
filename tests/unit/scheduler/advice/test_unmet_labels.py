"""What no node has is named, with what there is instead."""

import pytest

from alnair.cli.text import explanation
from alnair.model import names
from alnair.model.workload import NodeAffinity, PodSpec, Requirement, Term
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.scheduler.advice.diagnosis import Diagnosis, UnmetLabel
from alnair.scheduler.advice.unmet_labels import unmet_labels
from kit import make
from kit.world import World

TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def world_of_disks() -> World:
    world = World(
        make.node("a", gpus=1, labels={"disk": "ssd", "gpu.example/size": "40"}),
        make.node("b", gpus=1, model="T4", labels={"disk": "ssd", "gpu.example/size": "80"}),
        make.node("c", labels={"disk": "hdd"}),
    )
    world.step()
    return world


def requiring(*requirements: Requirement, **rest: object) -> PodSpec:
    term = Term(requirements, tuple(rest.get("fields", ())))  # type: ignore[arg-type]
    return make.spec(affinity=NodeAffinity((term,)))


def unmet(asked: PodSpec) -> list[UnmetLabel]:
    return unmet_labels(asked, world_of_disks().engine.view.cluster)


def explained(asked: PodSpec) -> Diagnosis:
    world = world_of_disks()
    world.create(make.pod("p", asked))
    world.settle()
    record = find(world.engine.view, "default", "p")
    assert record is not None
    return diagnose(world.engine.view, record, world.now)


def test_a_value_that_no_node_has_names_those_that_there_are_near_ones_first() -> None:
    (found,) = unmet(make.spec(selector={"disk": "hd"}))
    assert (found.field, found.key, found.asked) == ("spec.nodeSelector", "disk", ("hd",))
    assert [(each.value, each.nodes) for each in found.values] == [("hdd", 1), ("ssd", 2)]
    told = explained(make.spec(selector={"disk": "hd"}))
    assert told.unmet == (found,)
    assert (told.changes[0].text, told.changes[0].node) == (
        "select disk=hdd instead of disk=hd",
        "c",
    )


def test_a_key_that_no_node_has_names_near_ones() -> None:
    (found,) = unmet(make.spec(selector={"gpu-size": "80"}))
    assert (found.values, found.keys) == ((), ("gpu.example/size",))
    told = explained(make.spec(selector={"gpu-size": "80"}))
    change = told.changes[0]
    assert change.text == "select gpu.example/size=80 instead of gpu-size=80"
    assert change.node == "b"
    (found,) = unmet(make.spec(selector={"weather": "fair"}))
    assert (found.values, found.keys) == ((), ())


@pytest.mark.parametrize(
    ("requirement", "values"),
    [
        (Requirement("disk", "In", ("nvme", "sssd")), ["ssd", "hdd"]),
        (Requirement("gpu.example/size", "Gt", ("100",)), ["40", "80"]),
        (Requirement("size", "Exists"), []),
    ],
)
def test_required_node_affinity_is_looked_at_by_term(
    requirement: Requirement, values: list[str]
) -> None:
    (found,) = unmet(requiring(Requirement("disk", "Exists"), requirement))
    assert found.field == f"{TERMS}.nodeSelectorTerms[0].matchExpressions[1]"
    assert found.operator == requirement.operator
    assert [each.value for each in found.values] == values


def test_what_some_node_has_and_what_may_be_missing_is_not_named() -> None:
    assert not unmet(make.spec(selector={"disk": "ssd"}))
    assert not unmet(
        requiring(
            Requirement("disk", "In", ("nvme", "ssd")),
            Requirement("weather", "DoesNotExist"),
            Requirement("disk", "NotIn", ("tape",)),
        )
    )
    assert not unmet(requiring(Requirement("disk", "Gt", ("no number",)))), "malformed"


def test_a_node_that_is_not_there_and_a_model_that_nobody_has_are_named() -> None:
    (found,) = unmet(requiring(fields=(Requirement("metadata.name", "In", ("node-a",)),)))
    assert found.field == f"{TERMS}.nodeSelectorTerms[0].matchFields[0]"
    assert [each.value for each in found.values] == ["a", "b", "c"]
    (found,) = unmet(make.spec(whole=1, models="A1000"))
    assert (found.field, found.key) == ("metadata.annotations", names.GPU_MODELS)
    assert [each.value for each in found.values] == ["A100", "T4"]
    assert not unmet(make.spec(whole=1, models="A1000,T4"))


def test_a_resource_that_no_node_offers_names_near_ones() -> None:
    asked = make.spec(extended={"nvidia.com/gpus": 1})
    (found,) = unmet(asked)
    assert (found.field, found.key) == ("spec.containers[*].resources", "nvidia.com/gpus")
    assert (found.values, found.keys[0]) == ((), "nvidia.com/gpu")
    said = explanation.render(explained(asked))
    assert "spec.containers[*].resources: nvidia.com/gpus; no node has nvidia.com/gpus;" in said
    assert not unmet(make.spec(whole=9)), "too many of what there is"


def test_many_values_are_cut_short_and_counted() -> None:
    world = World(*(make.node(f"n{i}", labels={"rack": f"r{i % 30}"}) for i in range(60)))
    world.step()
    asked = make.spec(selector={"rack": "r99"})
    (found,) = unmet_labels(asked, world.engine.view.cluster)
    assert len(found.values) == 8
    assert found.more == 22


def test_a_value_of_a_node_that_is_gone_is_not_offered() -> None:
    world = world_of_disks()
    world.remove("c")
    world.step()
    (found,) = unmet_labels(make.spec(selector={"disk": "hdd"}), world.engine.view.cluster)
    assert [each.value for each in found.values] == ["ssd"]
