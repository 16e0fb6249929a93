"""Manifests as pods: what admission adds, how many there are, and where a mistake is."""

import pytest

from alnair.model import names
from alnair.sim.whatif.documents import ManifestError, read
from alnair.sim.whatif.manifests import (
    Priority,
    Submission,
    copies,
    new_nodes,
    submission,
)

CONTAINERS = "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1, cpu: 0.5}}}]"
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: team}}
spec:
  schedulerName: alnair-scheduler
  {CONTAINERS}
"""
JOB = f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec:
  parallelism: 3
  activeDeadlineSeconds: 600
  template:
    metadata: {{labels: {{{names.POD_GROUP_LABEL}: gang}}}}
    spec:
      schedulerName: alnair-scheduler
      {CONTAINERS}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: gang}}
spec: {{minMember: 3}}
"""


def submitted(text: str, priorities: dict[str, Priority] | None = None) -> Submission:
    return submission(read(text, "file"), priorities or {})


def wrong(text: str) -> list[str]:
    with pytest.raises(ManifestError) as error:
        submitted(text)
    return str(error.value).splitlines()


def test_a_pod_is_read_as_the_api_server_would_have_it() -> None:
    (pod,) = submitted(POD).pods
    assert (pod.namespace, pod.name, pod.owned, pod.node) == ("team", "p", False, "")
    assert dict(pod.spec.requests) == {"cpu": 500, "nvidia.com/gpu": 1, "pods": 1}
    (part,) = submitted(POD.replace("nvidia.com/gpu: 1", f"{names.VGPU_MEMORY}: 2048")).pods
    assert dict(part.spec.requests)[names.VGPU] == 1


def test_a_job_has_its_pods_and_they_their_gang() -> None:
    found = submitted(JOB)
    assert [p.name for p in found.pods] == ["train-0", "train-1", "train-2"]
    assert {(p.group, p.time_limit, p.owned) for p in found.pods} == {("gang", 600, True)}
    assert [(g.name, g.min_member, g.namespace) for g in found.gangs] == [("gang", 3, "default")]


def test_a_submission_can_be_there_several_times() -> None:
    found = copies(submitted(JOB), 3)
    assert [g.name for g in found.gangs] == ["gang", "gang-2", "gang-3"]
    assert [p.name for p in found.pods if p.group == "gang-2"] == [
        "train-0-2",
        "train-1-2",
        "train-2-2",
    ]
    assert len({p.uid for p in found.pods}) == 9
    # A gang that is not among what is submitted exists already, and once.
    member = JOB.partition("---")[0]
    assert {p.group for p in copies(submitted(member), 2).pods} == {"gang"}


def test_a_list_holds_its_items_and_other_kinds_are_left_out() -> None:
    items = "kind: List\napiVersion: v1\nitems:\n- {kind: Service, metadata: {name: web}}\n"
    assert submitted(items).left_out == ("Service web",)
    assert len(submitted(f"{POD}---\n{items}").pods) == 1
    assert len(submitted('{"kind": "List", "items": [{"kind": "Service"}]}').left_out) == 1


def test_priorities_come_from_their_classes() -> None:
    named = POD.replace("schedulerName", "priorityClassName: high\n  schedulerName")
    own = "---\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 7\npreemptionPolicy: Never\n"
    (pod,) = submitted(named + own).pods
    assert (pod.priority, pod.preempts) == (7, False)
    (pod,) = submitted(named, {"high": Priority(9)}).pods
    assert (pod.priority, pod.preempts) == (9, True)
    (pod,) = submitted(POD, {"usual": Priority(3, is_default=True)}).pods
    assert pod.priority == 3
    (problem,) = wrong(named)
    assert problem.startswith("file:6:22: Pod p: priorityClassName 'high' is not known")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: [", "file:1:8: this is no YAML"),
        ("", "file: there is nothing in it"),
        ("- 1", "file:1:1: this is no object"),
        ("kind: Pod\nmetadata: {}\nspec: {}", "file:2:11: Pod: it has no name"),
        ("kind: Pod\nmetadata: {name: p}\nspec: {}", "file:3:7: Pod p: it has no containers"),
        (POD.replace("[{name", "[3, {name"), "file:7:16: Pod p: spec.containers[0]: Expected"),
        (POD.replace("cpu: 0.5", "cpu: 5y"), "5y"),
        (POD.replace("cpu: 0.5", "cpu: -1"), "negative amount of cpu"),
        (POD + "  nodeName: a", "file:8:13: Pod p: spec.nodeName is set"),
        (JOB.replace("parallelism: 3", "parallelism: many"), "file:6:16: Job train: spec.parall"),
        ("kind: Job\nmetadata: {name: j}\nspec: {parallelism: 1}", "write spec.template"),
        ("kind: PodGroup\napiVersion: x/v1\nmetadata: {name: g}", "file:2:13: PodGroup g: api"),
        (JOB.replace("minMember: 3", "minMember: x"), "PodGroup gang: spec.minMember: Expected"),
    ],
)
def test_of_a_mistake_is_said_what_it_is_and_where(text: str, says: str) -> None:
    assert says in "\n".join(wrong(text))


def test_nodes_to_be_added_are_read_from_their_manifests() -> None:
    node = (
        "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 8, memory: 1Gi, pods: 10}}\n"
    )
    (found,) = new_nodes(read(node, "file"))
    assert found.allocatable == {"cpu": 8000, "memory": 1 << 30, "pods": 10}
    with pytest.raises(ManifestError) as error:
        new_nodes(read(f"{node}---\nkind: Node\nmetadata: {{name: b}}\n---\n{POD}", "file"))
    problems = str(error.value).splitlines()
    assert problems[0] == (
        "file:5:1: Node b: it has no status.allocatable, so nothing would fit: write what it offers"
    )
    assert "only nodes can be added" in problems[1]
