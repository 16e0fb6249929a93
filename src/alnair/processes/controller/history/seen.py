"""A pod as the history sees it: from the API server's object to a row."""

from typing import Any, Final

import msgspec

from alnair.history.database.rows import JobRow, NodeRow, PodRow
from alnair.history.history import End
from alnair.kube.objects import wire
from alnair.kube.owners import controller_of
from alnair.live.recording.record_lines import (
    NodeRecord,
    PodReader,
    PodRecord,
    PodWire,
    started,
)
from alnair.model import names
from alnair.model.api_types import Workload
from alnair.model.owners import Owner, OwnerRef, run_of, series_of
from alnair.profiler.ranks import rank_of, role_of

_AGENT: Final = {
    "app.kubernetes.io/name": "alnair",
    "app.kubernetes.io/component": "agent",
}


_workload = msgspec.json.Decoder(Workload)


class _Variable(msgspec.Struct, gc=False):
    name: str = ""
    value: str | None = None


class _Container(wire.Container):
    env: list[_Variable] | None = None


class _Spec(wire.PodSpecWire):
    containers: list[_Container] | None = None  # type: ignore[assignment]


class RankedPodWire(PodWire):
    """A pod, with what tells its rank."""

    spec: _Spec


class Agent(msgspec.Struct, frozen=True):
    """Where the agent of a node serves."""

    node: str
    address: str
    port: int


class PodSeen(msgspec.Struct, frozen=True):
    """What is kept of a pod that is there.

    Attributes:
        owner: The pod, as the lowest of its owners.
        started: When its first container started; 0 = not known.
        agent: Where it serves, if it is an agent of ours.
        workload: What it does, as its agent says on it.
        rank: In its job; None if nothing tells it.
        role: What kind of member of its job it is.
    """

    record: PodRecord
    owner: Owner
    scheduler: str
    started: float
    agent: Agent | None = None
    workload: Workload | None = None
    rank: int | None = None
    role: str = ""


class SeePods:
    """Makes values of pods."""

    def __init__(self) -> None:
        self._read = PodReader()

    def __call__(self, pod: RankedPodWire) -> PodSeen:
        """Return what is kept of a pod."""
        record = self._read(pod)
        meta = pod.metadata
        controller = controller_of(meta)
        labels = meta.labels or {}
        of_user = {names.USER: labels[names.USER]} if names.USER in labels else {}
        return PodSeen(
            record=record,
            owner=Owner(
                ref=OwnerRef("", "v1", "Pod", meta.namespace, meta.name, meta.uid),
                controller=controller,
                created=record.created,
                # Of a controlled pod, the controller's labels say what it is.
                labels=labels if controller is None else of_user,
            ),
            scheduler=pod.spec.scheduler_name or "",
            started=started(pod),
            agent=_agent(pod),
            workload=_told(meta.annotations or {}),
            rank=_rank(pod),
            role=role_of(labels),
        )


def _told(annotations: dict[str, str]) -> Workload | None:
    try:
        found = _workload.decode(annotations[names.WORKLOAD])
    except (KeyError, msgspec.MsgspecError, ValueError, RecursionError):
        return None  # of another version, or by another hand: nothing is known
    return found if found.v == 1 else None


def _rank(pod: RankedPodWire) -> int | None:
    meta = pod.metadata
    variables = {
        one.name: one.value
        for container in pod.spec.containers or ()
        for one in container.env or ()
        if one.value is not None
    }
    return rank_of(meta.name, meta.labels or {}, meta.annotations or {}, variables)


def _agent(pod: PodWire) -> Agent | None:
    labels = pod.metadata.labels or {}
    if pod.metadata.namespace != names.NAMESPACE or not _AGENT.items() <= labels.items():
        return None
    node, address = pod.spec.node_name or "", pod.status.pod_ip if pod.status else None
    ports = [port.container_port for one in pod.spec.containers or () for port in one.ports or ()]
    return Agent(node, address, ports[0]) if node and address and ports else None


def outcome(record: PodRecord) -> End:
    """Return how a pod ended, by its own status; empty while it lasts."""
    if not record.phase or record.phase == "completed":
        return record.phase
    return record.cut or record.phase


def pod_row(pod: PodSeen, job: str, node: NodeRecord | None, now: float) -> PodRow:
    """Return the row of a pod."""
    record = pod.record
    how = outcome(record)
    return PodRow(
        uid=record.uid,
        job=job,
        namespace=record.namespace,
        name=record.name,
        node=record.node,
        gpus=gpus(record, node),
        gpu_model=_model(node) if record.whole or record.slice_memory else "",
        created=record.created,
        bound=record.bound or None,
        waited=record.refused,
        started=pod.started or (record.bound if how else 0.0) or None,
        ended=(record.ended or now) if how else None,
        outcome=how,
        record=msgspec.to_builtins(record),
    )


def _model(node: NodeRecord | None) -> str:
    if node is None:
        return ""
    return node.model or (node.gpus[0].model if node.gpus else "")


def gpus(record: PodRecord, node: NodeRecord | None) -> float:
    """Return how many GPUs a pod asks for; of a slice the larger of its parts, if known."""
    memory = min((gpu.memory_mib for gpu in node.gpus), default=0) if node else 0
    part = record.slice_memory / memory if memory else 0.0
    return record.whole + min(max(part, record.slice_compute / 100.0), 1.0)


def job_row(chain: list[Owner], pod: PodSeen, least: int = 0) -> JobRow:
    """Return the row of a pod's job, by the pod's owners and how many of it are needed at once."""
    run = run_of(chain)
    labels = run.labels
    namespace = pod.record.namespace
    return JobRow(
        uid=run.ref.uid,
        namespace=namespace,
        api_group=run.ref.group,
        api_version=run.ref.version,
        kind=run.ref.kind,
        name=run.ref.name,
        series=series_of(chain),
        user=labels.get(names.USER) or pod.owner.labels.get(names.USER) or namespace,
        scheduler=pod.scheduler,
        labels=labels,
        submitted=run.created,
        least=least,
    )


def node_row(node: NodeRecord, now: float) -> NodeRow:
    """Return the row of a node."""
    since = node.since or (node.created if node.ready else now) or now
    record: dict[str, Any] = msgspec.to_builtins(node)
    return NodeRow(name=node.name, ready=node.ready, since=since, record=record)
