"""From pods of the API to the pods that scheduling knows."""

import json
from typing import Any

import msgspec
import pytest

from alnair.kube.objects import namespaced_limits, pod_projection, wire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model import names
from alnair.model.workload import (
    GpuPart,
    LabelSelector,
    NodeAffinity,
    Pod,
    Preference,
    Requirement,
    Term,
)
from kit import make

decoder = msgspec.json.Decoder(wire.PodWire)


def project(document: dict[str, Any], projector: PodProjector | None = None) -> Pod:
    return (projector or PodProjector())(decoder.decode(json.dumps(document)))


def manifest(
    *containers: dict[str, Any],
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u1",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
            "annotations": annotations,
            "labels": labels,
            **(metadata or {}),
        },
        "spec": {"containers": list(containers), "volumes": [{"name": "v"}], **spec},
        "status": status or {"phase": "Pending"},
    }


def container(name: str = "main", **requests: str) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": requests}}


def gpus(name: str = "main", **limits: str) -> dict[str, Any]:
    full = {"whole": names.GPU, "mib": names.VGPU_MEMORY, "percent": names.VGPU_COMPUTE}
    return {"name": name, "resources": {"limits": {full[k]: v for k, v in limits.items()}}}


def test_a_plain_pod_is_reduced_to_what_scheduling_needs() -> None:
    pod = project(
        manifest(
            container(cpu="1500m", memory="1Gi"),
            container("quiet"),
            schedulerName="alnair-scheduler",
            priority=7,
            nodeSelector={"zone": "a"},
            tolerations=[
                {"operator": "Exists"},
                {"key": "k", "value": "v", "effect": "NoSchedule"},
            ],
        )
    )
    assert (pod.uid, pod.namespace, pod.name) == ("u1", "ns", "p")
    assert (pod.scheduler, pod.priority, pod.created) == ("alnair-scheduler", 7, 1767323045.0)
    assert pod.spec.requests == (("cpu", 1500), ("memory", 2**30), ("pods", 1))
    assert (pod.spec.scored_cpu, pod.spec.scored_memory) == (1600, 2**30 + 200 * 2**20)
    assert pod.spec.node_selector == (("zone", "a"),)
    assert [(t.key, t.operator, t.value, t.effect) for t in pod.spec.tolerations] == [
        ("", "Exists", "", ""),
        ("k", "Equal", "v", "NoSchedule"),
    ]
    assert not any((pod.problem, pod.node, pod.finished, pod.deleting, pod.gated, pod.group))


def test_the_least_that_the_api_server_sends_is_enough() -> None:
    pod = project({"metadata": {"name": "p"}, "spec": {}})
    assert pod.scheduler == "default-scheduler"
    assert pod.spec.requests == (("pods", 1),)
    assert not pod.problem


def test_what_becomes_of_a_pod_is_read() -> None:
    running = project(
        manifest(
            nodeName="n",
            status={
                "phase": "Running",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "lastTransitionTime": "2026-01-02T00:00:09Z",
                    },
                    {
                        "type": "PodScheduled",
                        "status": "True",
                        "lastTransitionTime": "1970-01-01T00:01:00Z",
                    },
                ],
            },
        )
    )
    assert (running.node, running.bound_at, running.finished) == ("n", 60.0, False)
    refused = {
        "type": "PodScheduled",
        "status": "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    waiting = project(manifest(status={"phase": "Pending", "conditions": [refused]}))
    assert waiting.bound_at == 0
    for phase in ("Succeeded", "Failed"):
        assert project(manifest(nodeName="n", status={"phase": phase})).finished
    assert project(manifest(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})).deleting
    assert project(manifest(schedulingGates=[{"name": "g"}])).gated


def test_both_gang_labels_are_read_and_the_newer_one_wins() -> None:
    new, old = names.POD_GROUP_LABEL, names.POD_GROUP_LABEL_LEGACY
    assert project(manifest(labels={old: "a"})).group == "a"
    assert project(manifest(labels={old: "a", new: "b"})).group == "b"


def test_init_containers_sidecars_overhead_and_pod_level_resources_count() -> None:
    pod = project(
        manifest(
            container(cpu="1"),
            initContainers=[
                {**container("side", cpu="200m"), "restartPolicy": "Always"},
                container("init", cpu="2"),
            ],
            overhead={"cpu": "10m"},
            resources={"requests": {"memory": "3Gi"}},
        )
    )
    assert dict(pod.spec.requests) == {"cpu": 2210, "memory": 3 * 2**30, "pods": 1}


def test_limits_stand_in_for_requests_that_are_not_there() -> None:
    both = {
        "name": "c",
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
    }
    assert dict(project(manifest(both)).spec.requests) == {"cpu": 1000, "memory": 2**30, "pods": 1}


def test_affinity_is_kept_term_by_term() -> None:
    term = {
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}],
    }
    pod = project(
        manifest(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [term, {}]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 5,
                            "preference": {
                                "matchExpressions": [{"key": "b", "operator": "Exists"}]
                            },
                        }
                    ],
                },
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []},
            }
        )
    )
    assert pod.spec.affinity == NodeAffinity(
        required=(
            Term(
                (Requirement("a", "In", ("x", "y")),),
                (Requirement("metadata.name", "NotIn", ("n",)),),
            ),
            Term(),
        ),
        preferred=(Preference(5, Term((Requirement("b", "Exists"),))),),
    )


def test_gpu_limits_and_annotations_become_a_demand() -> None:
    pod = project(
        manifest(
            gpus("a", mib="4096", percent="30"),
            gpus("b", whole="1"),
            annotations={names.GPU_MODELS: "A100", names.VGPU_POLICY: "soft"},
        )
    )
    demand = pod.spec.gpu
    assert demand is not None
    assert (demand.whole, demand.memory_mib, demand.compute) == (1, 4096, 30)
    assert (demand.hard, demand.models, demand.problem) == (False, ("A100",), "")
    assert dict(pod.spec.requests)[names.VGPU_MEMORY] == 4096


def test_a_refused_demand_is_not_unreadable_and_says_why() -> None:
    pod = project(manifest(gpus(mib="4096", percent="130")))
    assert not pod.problem
    assert pod.spec.gpu is not None
    assert "130 % of one GPU" in pod.spec.gpu.problem


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (manifest(container(cpu="1ki")), "'1ki' is not a quantity"),
        (manifest(container("c", cpu="-1")), "container 'c' requests a negative amount of cpu"),
        (
            manifest(gpus("c", whole="-1")),
            "container 'c' requests a negative amount of nvidia.com/gpu",
        ),
        (manifest(overhead={"cpu": "x"}), "'x' is not a quantity"),
        (manifest(resources={"requests": {"cpu": ""}}), "'' is not a quantity"),
        (
            manifest(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}]),
            "spec.resourceClaims asks for devices by dynamic resource allocation",
        ),
        (
            manifest(annotations={names.GPU_ASSIGNMENT: "{"}),
            f"annotation {names.GPU_ASSIGNMENT} cannot be read",
        ),
        (
            manifest(annotations={names.GPU_ASSIGNMENT: f'{{"v":1,"x":{make.NESTED}}}'}),
            "cannot be read",
        ),
        (
            manifest(annotations={names.GPU_ASSIGNMENT: '{"v":1,"t":"","containers":[]}'}),
            "cannot be read",
        ),
        (
            manifest(annotations={names.GPU_ASSIGNMENT: '{"v":2,"t":"","containers":{}}'}),
            "version 2 is not known",
        ),
    ],
)
def test_what_cannot_be_read_becomes_a_problem_and_raises_nothing(
    document: dict[str, Any], words: str
) -> None:
    pod = project(document)
    assert words in pod.problem
    assert dict(pod.spec.requests)["pods"] == 1


def test_a_pod_with_claims_for_devices_holds_what_it_asks_for_where_another_placed_it() -> None:
    pod = project(manifest(container("c", cpu="2"), resourceClaims=[{"name": "gpu"}], nodeName="n"))
    assert dict(pod.spec.requests)["cpu"] == 2000
    assert not project(manifest(resourceClaims=[])).problem


def test_an_assignment_is_read_container_by_container() -> None:
    text = json.dumps(
        {
            "v": 1,
            "t": "2026-01-01T00:00:00Z",
            "containers": {
                "a": [
                    {"uuid": "G1", "index": 1, "memory_mib": 4096, "compute": 30, "whole": False}
                ],
                "b": [],
            },
        }
    )
    pod = project(manifest(annotations={names.GPU_ASSIGNMENT: text}))
    assert pod.assignment == (("a", (GpuPart("G1", 1, 4096, 30, whole=False),)), ("b", ()))


def test_pods_alike_share_one_spec_and_others_do_not() -> None:
    projector = PodProjector()
    one = project(manifest(container(cpu="1")), projector)
    two = project(manifest(container(cpu="1"), metadata={"name": "q", "uid": "u2"}), projector)
    written_otherwise = project(manifest(container(cpu="1000m")), projector)
    other = project(manifest(container(cpu="2")), projector)
    models = project(manifest(container(cpu="1"), annotations={names.GPU_MODELS: "T4"}), projector)
    shared = container(**{names.VGPU_MEMORY: "64"})
    swaps = {names.VGPU_MEMORY_POLICY: "swap"}
    more = swaps | {names.VGPU_HOST_MEMORY: "64"}
    less = swaps | {names.VGPU_HOST_MEMORY: "65"}
    said = ({}, {names.VGPU_PRIORITY: "low"}, {names.VGPU_ISOLATION: "mps"}, swaps, more, less)
    slices = {project(manifest(shared, annotations=one), projector).spec for one in said}
    assert len(slices) == 6
    assert one.spec is two.spec is written_otherwise.spec
    assert one.spec != other.spec
    assert one.spec != models.spec


def test_distinct_specs_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_projection, "_SPECS_KEPT", 10)
    projector = PodProjector()
    for number in range(35):
        assert (
            project(manifest(container(cpu=str(number))), projector).spec.scored_cpu
            == 1000 * number
        )
    assert len(projector._by_wire) <= 10
    assert len(projector._specs) <= 10


def test_what_preemption_asks_of_a_pod_is_read() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    pod = project(
        manifest(
            container(),
            preemptionPolicy="Never",
            priority=7,
            status={
                "nominatedNodeName": "n",
                "startTime": "1970-01-01T00:00:09Z",
                "conditions": [condition],
            },
            metadata={"deletionTimestamp": "2026-01-02T03:04:06Z"},
        )
    )
    assert (pod.priority, pod.preempts, pod.nominated, pod.started) == (7, False, "n", 9.0)
    assert pod.preempted
    plain = project(manifest(container()))
    assert (plain.preempts, plain.nominated, plain.started, plain.preempted) == (True, "", 0, False)


def test_a_pod_that_something_else_evicts_is_not_preempted() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    deleted = {"deletionTimestamp": "2026-01-02T03:04:06Z"}
    pod = project(manifest(container(), status={"conditions": [condition]}, metadata=deleted))
    assert (pod.deleting, pod.preempted) == (True, False)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ('{"v":1,"t":"1970-01-01T01:00:00Z","gpu":0,"idle_since":"1970-01-01T00:00:30Z"}', 30.0),
        ('{"v":1,"t":"1970-01-01T01:00:00Z","gpu":71.5}', 0.0),
        ('{"v":2,"t":"1970-01-01T01:00:00Z","idle_since":"1970-01-01T00:00:30Z"}', 0.0),
        ('{"v":1,"t":"x","idle_since":"yesterday"}', 0.0),
        ('{"v":1,"t":"x","idle_since":7}', 0.0),
        (make.NESTED, 0.0),
        ("", 0.0),
    ],
)
def test_idleness_is_believed_only_where_it_can_be_read(text: str, since: float) -> None:
    annotations = {names.UTILIZATION: text, names.RECLAIMABLE: "idle"}
    pod = project(manifest(container(), annotations=annotations))
    assert (pod.idle_since, pod.reclaimable, pod.problem) == (since, "idle", "")


@pytest.mark.parametrize(
    ("owners", "owned", "daemon"),
    [
        ([], False, False),
        ([{"kind": "ReplicaSet", "controller": True}], True, False),
        ([{"kind": "ReplicaSet"}], False, False),
        ([{"kind": "DaemonSet", "controller": True}], False, True),
        ([{"kind": "Node", "controller": True}], False, True),
    ],
)
def test_who_replaces_a_pod_is_read_off_its_controller(
    owners: list[dict[str, object]], owned: bool, daemon: bool
) -> None:
    annotations = {names.EVICTABLE: "false"} if owned else None
    pod = project(
        manifest(container(), metadata={"ownerReferences": owners}, annotations=annotations)
    )
    assert (pod.owned, pod.daemon, pod.evictable) == (owned, daemon, not owned)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-11-21T12:00:00Z", 1795262400.0),
        ("2026-11-21T14:00:00+02:00", 1795262400.0),
        ("", 0.0),
        ("yesterday", 0.0),
        ("0001-01-01T00:00:00", 0.0),
        ("1000-01-01T00:00:00Z", 0.0),
    ],
)
def test_when_a_pod_last_saved_its_work_is_read_or_ignored_and_named(
    text: str, when: float
) -> None:
    pod = project(manifest(container(), annotations={names.LAST_CHECKPOINT: text}))
    assert pod.saved_at == when
    assert bool(pod.ignored) == bool(text and not when)
    assert not pod.problem


def test_a_disruption_budget_is_reduced_to_what_preemption_counts() -> None:
    document = {
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "1970-01-01T00:00:00Z"}},
    }
    budget = namespaced_limits.project_budget(msgspec.convert(document, wire.BudgetWire))
    assert (budget.namespace, budget.name, budget.allowed) == ("ns", "b", 2)
    assert budget.selector == LabelSelector((Requirement("app", "In", ("web",)),))
    assert budget.disrupted == {"p"}
    bare = namespaced_limits.project_budget(msgspec.convert({"metadata": {}}, wire.BudgetWire))
    assert (bare.selector, bare.allowed, bare.disrupted) == (None, 0, frozenset())
