"""What there is of training jobs' objects: narrow types, and what decisions see of them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.elastic.job_status import seconds
from alnair.elastic.observed import Ending
from alnair.elastic.pod_templates import KINDS
from alnair.kube.objects.training_jobs import JobMeta
from alnair.kube.objects.wire import ObjectMeta
from alnair.model import names
from alnair.model.api_types import PodGroupStatus

#: Kind, namespace and name of a training job.
JobKey = tuple[str, str, str]

#: Label of a pod with its place among those of an Indexed Job.
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
#: How often pods of the place were lost by disruptions before this one, as Kubernetes' Job counts.
LOSSES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
#: By this finalizer Kubernetes' Job keeps a pod until it has counted it.
TRACKED: Final = "batch.kubernetes.io/job-tracking"
#: While one of these is why a container waits, it does not start by itself soon.
_STUCK: Final = ("Err", "ImagePull", "InvalidImage", "CreateContainer", "CrashLoop", "RunContainer")


class _State(msgspec.Struct):
    reason: str | None = None
    message: str | None = None


class _Run(msgspec.Struct, rename="camel"):
    started_at: str = ""


class _Exit(msgspec.Struct, rename="camel"):
    exit_code: int = 0


class _ContainerState(msgspec.Struct):
    waiting: _State | None = None
    running: _Run | None = None
    terminated: _Exit | None = None


class _ContainerStatus(msgspec.Struct):
    state: _ContainerState | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    restart_policy: str | None = None


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None


class _PodMeta(ObjectMeta, rename="camel"):
    finalizers: list[str] | None = None


class PodWire(msgspec.Struct):
    """A worker's or a launcher's pod."""

    metadata: _PodMeta
    spec: _PodSpec
    status: _PodStatus | None = None


class _ReplicasSpec(msgspec.Struct):
    replicas: int | None = None


class _SetStatus(msgspec.Struct, rename="camel"):
    observed_generation: int | None = None


class StatefulSetWire(msgspec.Struct):
    """The workers of Horovod."""

    metadata: JobMeta
    spec: _ReplicasSpec
    status: _SetStatus | None = None


class _JobSpec(msgspec.Struct):
    parallelism: int | None = None


class _JobStatus(msgspec.Struct):
    succeeded: int | None = None
    conditions: list[_Condition] | None = None


class BatchJobWire(msgspec.Struct):
    """A launcher, or the workers of torchrun."""

    metadata: ObjectMeta
    spec: _JobSpec
    status: _JobStatus | None = None


class _GroupSpec(msgspec.Struct, rename="camel"):
    min_member: int = 0


class GroupWire(msgspec.Struct):
    """A PodGroup."""

    metadata: ObjectMeta
    spec: _GroupSpec = msgspec.field(default_factory=_GroupSpec)
    status: PodGroupStatus | None = None


class PartWire(msgspec.Struct):
    """A Service, ConfigMap or NetworkPolicy: that it is there is all that counts."""

    metadata: ObjectMeta


class ChildPart(msgspec.Struct, frozen=True):
    """The same, by the uid of the training job that it belongs to, and what was applied of it."""

    job: JobKey | None
    owner: str
    name: str
    applied: str = ""


class ChildPod(msgspec.Struct, frozen=True):
    """A pod of a training job; `owner` is the uid of what made it.

    Attributes:
        since: When its container began to run, seconds since the epoch; 0 if it does not.
        losses: Of one that failed, how many were lost in its place before by disruptions.
        held: It is being deleted, and its Job has yet to let it go.
        over: Its containers have ended for good. A kubelet tells so before the pod has ended.
        completed: They have ended well.
    """

    job: JobKey | None
    owner: str
    role: str
    name: str
    uid: str
    index: int
    placed: bool
    running: bool
    ready: bool
    ended: bool
    leaving: bool
    hosts_seen: str
    problem: str
    node: str = ""
    since: float = 0.0
    losses: int = 0
    held: bool = False
    over: bool = False
    completed: bool = False


class ChildSet(msgspec.Struct, frozen=True):
    """What makes workers or a launcher: how many, where not, and how it ended if it did.

    Attributes:
        owner: Uid of the training job that it belongs to: one of the same name that was deleted
            may have left it behind.
        done: So many of its pods have succeeded.
        avoids: Nodes that new pods keep away from.
        settled: Its controller has read its latest version.
    """

    job: JobKey | None
    owner: str
    uid: str
    role: str
    size: int
    ending: Ending | None = None
    done: int = 0
    is_endless: bool = False
    avoids: tuple[str, ...] = ()
    settled: bool = True


class ChildGroup(msgspec.Struct, frozen=True):
    """A PodGroup: its bounds, whether all had a node once, and why it fits nowhere if so.

    `applied` is the digest of what was applied of it.
    """

    job: JobKey | None
    owner: str
    members: int
    least: str
    placed: bool
    refusal: str
    applied: str = ""


def project_pod(pod: PodWire) -> ChildPod:
    """Return the pod as decisions see it."""
    meta, status = pod.metadata, pod.status or _PodStatus()
    labels, annotations = meta.labels or {}, meta.annotations or {}
    losses, leaving = annotations.get(LOSSES, ""), meta.deletion_timestamp is not None
    number = labels.get(_INDEX) or meta.name.rpartition("-")[2]
    ready = any(c.type == "Ready" and c.status == "True" for c in status.conditions or ())
    ended, exits = status.phase in ("Succeeded", "Failed"), _exits(pod)
    return ChildPod(
        job=_job(meta),
        owner=_owner(meta),
        role=labels.get("role", ""),
        name=meta.name,
        uid=meta.uid,
        index=int(number) if number.isdecimal() else 0,
        placed=bool(pod.spec.node_name),
        running=status.phase == "Running",
        ready=ready,
        ended=ended,
        leaving=leaving,
        hosts_seen=annotations.get(names.HOSTS_SEEN, ""),
        problem=_problem(status),
        node=pod.spec.node_name or "",
        since=_since(status),
        losses=int(losses) if losses.isdecimal() and status.phase == "Failed" else 0,
        held=leaving and TRACKED in (meta.finalizers or ()),
        over=ended or bool(exits),
        completed=status.phase == "Succeeded" or (not ended and bool(exits) and not any(exits)),
    )


def project_set(made: StatefulSetWire) -> ChildSet:
    """Return the StatefulSet as decisions see it."""
    meta, replicas = made.metadata, made.spec.replicas
    seen = made.status.observed_generation if made.status else None
    return ChildSet(
        _job(meta),
        _owner(meta),
        meta.uid,
        "worker",
        size=1 if replicas is None else replicas,
        is_endless=True,
        avoids=_avoids(meta),
        settled=(seen or 0) >= meta.generation,
    )


def project_batch_job(made: BatchJobWire) -> ChildSet:
    """Return the Job as decisions see it."""
    meta = made.metadata
    role = (meta.labels or {}).get("role", "")
    size = made.spec.parallelism
    ending = None
    for one in (made.status.conditions if made.status else None) or ():
        if one.status == "True" and one.type in ("Complete", "Failed"):
            ending = Ending(one.type == "Complete", one.reason or "", one.message or "")
    return ChildSet(
        _job(meta),
        _owner(meta),
        meta.uid,
        role,
        size=1 if size is None else size,
        ending=ending,
        avoids=_avoids(meta),
        done=(made.status.succeeded if made.status else None) or 0,
    )


def project_group(group: GroupWire) -> ChildGroup:
    """Return the PodGroup as decisions see it."""
    conditions = (group.status.conditions if group.status else None) or []
    placed = any(c.type == "InitiallyScheduled" and c.status == "True" for c in conditions)
    refusal = ""
    for one in conditions:
        if one.type == "Scheduled" and one.status == "True":
            placed = True
        elif one.type == "Scheduled" and one.reason == "Unschedulable":
            refusal = one.message
    meta = group.metadata
    return ChildGroup(
        _job(meta),
        _owner(meta),
        members=group.spec.min_member,
        least=(meta.annotations or {}).get(names.ELASTIC_MIN, ""),
        placed=placed,
        refusal=refusal,
        applied=_applied(meta),
    )


def project_part(part: PartWire) -> ChildPart:
    """Return what is known of such an object."""
    meta = part.metadata
    return ChildPart(_job(meta), _owner(meta), meta.name, _applied(meta))


def _job(meta: ObjectMeta) -> JobKey | None:
    """Return the training job that an object says it is part of; None if it says nothing."""
    return job_of(meta.labels or {}, meta.namespace)


def _owner(meta: ObjectMeta) -> str:
    """Return the uid of what controls an object; empty if nothing does."""
    return next((one.uid for one in meta.owner_references or () if one.controller), "")


def job_of(labels: Mapping[str, str], namespace: str) -> JobKey | None:
    """Return the training job that the labels name."""
    for kind in KINDS:
        if name := labels.get(kind):
            return kind, namespace, name
    return None


def _applied(meta: ObjectMeta) -> str:
    return (meta.annotations or {}).get(names.APPLIED, "")


def _avoids(meta: ObjectMeta) -> tuple[str, ...]:
    said = (meta.annotations or {}).get(names.LEAVE_NODES, "")
    return tuple(said.split(",")) if said else ()


def _since(status: _PodStatus) -> float:
    for one in status.container_statuses or ():
        if one.state and one.state.running:
            return seconds(one.state.running.started_at)
    return 0.0


def _exits(pod: PodWire) -> list[int]:
    """Return how the containers of a pod have ended; nothing as long as one goes on or may."""
    if pod.spec.restart_policy != "Never" or pod.status is None:
        return []
    states = [one.state for one in pod.status.container_statuses or ()]
    exits = [one.terminated.exit_code for one in states if one and one.terminated]
    return exits if len(exits) == len(states) else []


def _problem(status: _PodStatus) -> str:
    for one in status.container_statuses or ():
        waiting = one.state.waiting if one.state else None
        if waiting is not None and (waiting.reason or "").startswith(_STUCK):
            return f"{waiting.reason}: {waiting.message or 'its container does not start'}"
    return ""
