"""Manifests as what is submitted: as admission leaves it, several times, over what is there."""

import math

import msgspec
import pytest

from alnair.kube.objects.wire import ObjectMeta
from alnair.model import names
from alnair.model.quota import Quota
from alnair.sim.inputs.workloads import PriorityClass
from alnair.sim.whatif.submitted import Submission, copies, new_nodes, submission
from alnair.traces.csv_table import TableError
from kit import make

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
  completions: 3
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
NODE = """
apiVersion: v1
kind: Node
metadata: {name: more}
status: {allocatable: {cpu: 8, memory: 1Gi, pods: 10}}
"""


def submitted(text: str, *priorities: PriorityClass) -> Submission:
    return submission([("file", text)], (make.node(),), priorities)


def test_a_pod_is_read_as_admission_leaves_it() -> None:
    (pod,) = submitted(POD).pods
    assert (pod.namespace, pod.name, pod.owned, pod.node) == ("team", "p", False, "")
    assert dict(pod.spec.requests) == {"cpu": 500, "nvidia.com/gpu": 1, "pods": 1}
    (part,) = submitted(POD.replace("nvidia.com/gpu: 1", f"{names.VGPU_MEMORY}: 2048")).pods
    assert dict(part.spec.requests)[names.VGPU] == 1


def test_a_job_has_its_pods_with_its_time_limit_and_they_their_gang() -> None:
    found = submitted(JOB)
    assert [p.name for p in found.pods] == ["train-0", "train-1", "train-2"]
    assert {(p.group, p.time_limit, p.owned) for p in found.pods} == {("gang", 600, True)}
    assert [(g.name, g.min_member, g.namespace) for g in found.gangs] == [("gang", 3, "default")]
    forever = submitted(JOB.replace("activeDeadlineSeconds: 600", "backoffLimit: 0"))
    assert {p.time_limit for p in forever.pods} == {0}
    assert not math.isinf(max(p.created for p in forever.pods))


def test_a_submission_can_be_there_several_times() -> None:
    found = copies(submitted(JOB), 3)
    assert [g.name for g in found.gangs] == ["gang", "gang-2", "gang-3"]
    second = ["train-0-2", "train-1-2", "train-2-2"]
    assert [p.name for p in found.pods if p.group == "gang-2"] == second
    assert len({p.uid for p in found.pods}) == 9
    # A gang that is not among what is submitted exists already, and once.
    member = JOB.partition("---")[0]
    assert {p.group for p in copies(submitted(member), 2).pods} == {"gang"}


def test_priorities_are_those_of_the_cluster_unless_the_file_has_them() -> None:
    named = POD.replace("schedulerName", "priorityClassName: high\n  schedulerName")
    high = PriorityClass(ObjectMeta(name="high"), 9)
    assert [p.priority for p in submitted(named, high).pods] == [9]
    api = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass"
    own = f"---\n{api}\nmetadata: {{name: high}}\nvalue: 7\npreemptionPolicy: Never\n"
    assert [(p.priority, p.preempts) for p in submitted(named + own, high).pods] == [(7, False)]
    usual = msgspec.structs.replace(high, global_default=True)
    assert [p.priority for p in submitted(POD, usual).pods] == [9]
    with pytest.raises(TableError, match="there is no PriorityClass 'high'"):
        submitted(named)


def test_other_objects_count_as_well() -> None:
    api = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota"
    found = submitted(
        f"{POD}---\n{api}\nmetadata: {{name: q, namespace: team}}\nspec: {{max: {{}}}}\n"
    )
    ((kind, namespace, name, value),) = found.objects
    assert (kind, namespace, name) == ("ElasticQuota", "team", "q")
    assert isinstance(value, Quota)


def test_pods_that_are_on_a_node_are_refused() -> None:
    with pytest.raises(TableError, match="pod team/p is on a node already"):
        submitted(POD + "  nodeName: node")


def test_nodes_to_be_added_are_read_from_their_manifests() -> None:
    (found,) = new_nodes([("file", NODE)])
    assert found.allocatable == {"cpu": 8000, "memory": 1 << 30, "pods": 10}
    with pytest.raises(TableError, match="only nodes can be added"):
        new_nodes([("file", f"{NODE}---\n{POD}")])
    with pytest.raises(TableError, match="node more has no status"):
        new_nodes([("file", NODE.partition("status")[0])])
