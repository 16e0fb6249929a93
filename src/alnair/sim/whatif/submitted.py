"""Kubernetes manifests as what would be submitted, and as nodes that would join."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.model.nodes import Node
from alnair.model.workload import Gang, Pod
from alnair.sim.inputs import manifests
from alnair.sim.inputs.options import InputOptions
from alnair.sim.inputs.training_jobs import Bounds
from alnair.sim.inputs.workloads import PriorityClass
from alnair.sim.jobs import Job
from alnair.traces.csv_table import Problem, TableError

#: Names of files, and their texts.
Texts = Sequence[tuple[str, str]]
_NO_NODES: Final = "only nodes can be added: leave the pods to --submit"


class Submission(msgspec.Struct, frozen=True):
    """What manifests ask for.

    Attributes:
        objects: of other kinds, such as quotas: kind, namespace, name, value.
        notes: what was left out or taken for granted.
        trainings: of the gangs, those that start with as many pods as there is room for.
    """

    pods: tuple[Pod, ...] = ()
    gangs: tuple[Gang, ...] = ()
    objects: tuple[tuple[str, str, str, object], ...] = ()
    notes: tuple[str, ...] = ()
    trainings: dict[tuple[str, str], Bounds] = {}


def submission(
    texts: Texts,
    nodes: tuple[Node, ...],
    priorities: Iterable[PriorityClass] = (),
    namespace: str = "default",
) -> Submission:
    """Return what manifests ask for.

    Args:
        texts: of the manifests.
        nodes: of the cluster, for pods of DaemonSets.
        priorities: PriorityClasses of the cluster; those of the manifests go first.
        namespace: of objects that name none.

    Raises:
        TableError: all that is wrong, with file and line.
    """
    options = InputOptions(namespace=namespace)
    found, problems = manifests.read(texts, options, nodes, priorities)
    for job in found.running:
        for pod in job.pods:
            text = f"pod {pod.namespace}/{pod.name} is on a node already: leave spec.nodeName away"
            problems.append(Problem(_names(texts), 0, "", text))
    if problems:
        raise TableError(problems)
    return Submission(
        tuple(_pod(pod, job) for job in found.jobs for pod in job.pods),
        tuple(job.gang for job in found.jobs if job.gang is not None),
        found.objects,
        tuple(found.notes),
        found.trainings,
    )


def new_nodes(texts: Texts) -> tuple[Node, ...]:
    """Return the nodes of Node manifests.

    Raises:
        TableError: all that is wrong, with file and line.
    """
    found, problems = manifests.read(texts, InputOptions(), ())
    if found.jobs or found.running:
        problems.append(Problem(_names(texts), 0, "", _NO_NODES))
    for node in found.nodes:
        if not node.allocatable:
            text = f"node {node.name} has no status.allocatable: write what it offers"
            problems.append(Problem(_names(texts), 0, "", text))
    if problems:
        raise TableError(problems)
    return found.nodes


def copies(one: Submission, count: int) -> Submission:
    """Return a submission so many times: the second time `-2` is added to the names, and so on."""
    own = {(gang.namespace, gang.name) for gang in one.gangs}
    pods, gangs, trainings = list(one.pods), list(one.gangs), dict(one.trainings)
    for number in range(2, count + 1):
        end = f"-{number}"
        gangs += [replace(gang, name=gang.name + end) for gang in one.gangs]
        trainings |= {(ns, name + end): found for (ns, name), found in one.trainings.items()}
        pods += [
            replace(
                pod,
                uid=pod.uid + end,
                name=pod.name + end,
                group=pod.group + end if (pod.namespace, pod.group) in own else pod.group,
            )
            for pod in one.pods
        ]
    return replace(one, pods=tuple(pods), gangs=tuple(gangs), trainings=trainings)


def _pod(pod: Pod, job: Job) -> Pod:
    limit = pod.time_limit
    if not limit and math.isfinite(job.duration):
        limit = math.ceil(job.duration)
    return replace(pod, uid=f"submitted-{pod.namespace}-{pod.name}", time_limit=limit)


def _names(texts: Texts) -> str:
    return ", ".join(name for name, _ in texts)
