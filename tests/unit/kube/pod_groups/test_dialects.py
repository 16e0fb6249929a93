"""PodGroups in all dialects, and which of them a pod belongs to."""

from typing import Any

import msgspec
import pytest

from alnair.kube.objects import wire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.pod_groups.dialects import GangProjector, NativeProjector, NativeWire, PodGroupWire
from alnair.kube.pod_groups.gang_labels import group_of
from alnair.model import names
from alnair.model.workload import Gang, GangTopology

META = {"name": "g", "namespace": "n", "creationTimestamp": "1970-01-01T00:00:10Z"}
RACK = "topology.kubernetes.io/rack"


def native(spec: dict[str, Any], **annotations: str) -> Gang:
    document = {"metadata": {**META, "annotations": annotations}, "spec": spec}
    return NativeProjector("scheduling.k8s.io/v1alpha2")(msgspec.convert(document, NativeWire))


def custom(annotations: dict[str, str], **spec: Any) -> Gang:
    document = {"metadata": {**META, "annotations": annotations}, "spec": spec}
    return GangProjector("a/v1")(msgspec.convert(document, PodGroupWire))


def test_a_native_gang_has_its_count_and_its_topology() -> None:
    """As a 1.36 API server returns it; 1.37's v1beta1 has these fields too."""
    gang = native(
        {
            "podGroupTemplateRef": {
                "workload": {"workloadName": "w", "podGroupTemplateName": "workers"}
            },
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "schedulingConstraints": {"topology": [{"key": RACK}]},
            "disruptionMode": "Pod",
        }
    )
    assert (gang.namespace, gang.name, gang.min_member, gang.created) == ("n", "g", 4, 10.0)
    assert gang.api == "scheduling.k8s.io/v1alpha2"
    assert gang.topology == GangTopology(RACK)


@pytest.mark.parametrize("spec", [{}, {"schedulingPolicy": {"basic": {}}}])
def test_pods_of_a_native_group_without_gang_policy_are_on_their_own(spec: dict[str, Any]) -> None:
    assert native(spec).min_member == 1


def test_annotations_prefer_a_level_beside_the_native_constraint() -> None:
    gang = native(
        {"schedulingConstraints": {"topology": [{"key": "example.com/block"}]}},
        **{names.TOPOLOGY_PREFERRED: "rack"},
    )
    assert gang.topology == GangTopology("example.com/block", (RACK,))


def test_levels_are_labels_or_words_for_the_well_known_ones() -> None:
    gang = custom({names.TOPOLOGY_PREFERRED: " rack, example.com/spine ,,zone"})
    preferred = (RACK, "example.com/spine", "topology.kubernetes.io/zone")
    assert gang.topology == GangTopology("", preferred)
    assert custom({names.TOPOLOGY_REQUIRED: "rack"}).topology == GangTopology(RACK)
    assert custom({}).topology is None


def test_min_resources_are_read_in_base_units() -> None:
    gang = custom({}, minMember=2, minResources={"memory": "1Gi", "cpu": "1500m"})
    assert gang.min_resources == (("cpu", 1500), ("memory", 1 << 30))
    assert not gang.problem


def test_min_resources_that_cannot_be_read_are_told() -> None:
    gang = custom({}, minMember=2, minResources={"cpu": "many"})
    assert "minResources" in gang.problem
    assert "'many'" in gang.problem


@pytest.mark.parametrize(
    ("labels", "group", "expected"),
    [
        ({}, None, ""),
        ({names.POD_GROUP_LABEL: "a"}, None, "a"),
        ({names.POD_GROUP_LABEL_LEGACY: "a"}, None, "a"),
        ({}, "a", "a"),
        ({names.POD_GROUP_LABEL: "a", names.POD_GROUP_LABEL_LEGACY: "b"}, "c", "a"),
        ({names.POD_GROUP_LABEL_LEGACY: "b"}, "c", "b"),
        ({}, "", ""),
    ],
)
def test_a_pod_belongs_to_the_group_that_it_names(
    labels: dict[str, str], group: str | None, expected: str
) -> None:
    native_group = None if group is None else wire.SchedulingGroup(group)
    assert group_of(labels, native_group) == expected


@pytest.mark.parametrize("text", [",", " ", " , ,"])
def test_a_required_level_without_a_name_is_a_problem_that_names_its_annotation(text: str) -> None:
    problem = custom({names.TOPOLOGY_REQUIRED: text}).problem
    assert problem.startswith(f"annotation {names.TOPOLOGY_REQUIRED} is {text!r}")
    annotation = names.KUEUE_TOPOLOGY_REQUIRED
    pod = msgspec.convert(
        {"metadata": {"uid": "u", "annotations": {annotation: text}}, "spec": {}}, wire.PodWire
    )
    assert PodProjector()(pod).problem.startswith(f"annotation {annotation} is {text!r}")


def test_an_empty_annotation_asks_for_nothing() -> None:
    gang = custom({names.TOPOLOGY_REQUIRED: ""})
    assert (gang.topology, gang.problem) == (None, "")


def test_a_pods_own_topology_is_read_in_kueues_words() -> None:
    pod = wire.PodWire(
        wire.ObjectMeta(annotations={names.KUEUE_TOPOLOGY_REQUIRED: RACK}), wire.PodSpecWire()
    )
    assert PodProjector()(pod).topology == GangTopology(RACK)
