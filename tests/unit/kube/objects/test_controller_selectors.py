"""Services and controllers are what they select."""

import msgspec
import pytest

from alnair.kube.objects import wire
from alnair.kube.objects.controller_selectors import (
    MapSelecting,
    Selecting,
    project_map_selecting,
    project_selecting,
)
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model.workload import LabelSelector, Requirement

WEB = Requirement("app", "In", ("web",))


def test_a_service_selects_by_a_map_and_without_one_nothing() -> None:
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}}}
    assert project_map_selecting(msgspec.convert(service, MapSelecting)) == LabelSelector((WEB,))
    external = {"metadata": {"name": "s"}, "spec": {"type": "ExternalName"}}
    assert project_map_selecting(msgspec.convert(external, MapSelecting)) is None


def test_a_replica_set_selects_by_labels_and_expressions() -> None:
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "Exists"}],
    }
    found = msgspec.convert({"metadata": {"name": "r"}, "spec": {"selector": selector}}, Selecting)
    assert project_selecting(found) == LabelSelector((WEB, Requirement("tier", "Exists")))


@pytest.mark.parametrize(
    ("api", "kind", "controller", "expected"),
    [
        ("apps/v1", "ReplicaSet", True, ("ReplicaSet", "o")),
        ("v1", "ReplicationController", True, ("ReplicationController", "o")),
        ("apps/v1", "StatefulSet", True, ("StatefulSet", "o")),
        ("apps/v1", "ReplicaSet", False, None),
        ("example.com/v1", "ReplicaSet", True, None),
        ("batch/v1", "Job", True, None),
    ],
)
def test_a_pod_knows_the_controller_whose_selector_counts(
    api: str, kind: str, controller: bool, expected: tuple[str, str] | None
) -> None:
    owner = {"apiVersion": api, "kind": kind, "name": "o", "controller": controller}
    pod = {"metadata": {"name": "p", "ownerReferences": [owner]}, "spec": {}}
    assert PodProjector()(msgspec.convert(pod, wire.PodWire)).controller == expected
