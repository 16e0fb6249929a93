"""Pods as members of a PodGroup: only what the group's status needs of them."""

import msgspec
from msgspec import Struct

from alnair.kube.objects.wire import SchedulingGroup
from alnair.kube.pod_groups.gang_labels import group_of
from alnair.scheduler.gangs.pod_group_status import UNSCHEDULABLE, Member


class OwnerWire(Struct, gc=False):
    """An owner of a pod."""

    name: str = ""


class MemberMeta(Struct, rename="camel"):
    """Metadata of a pod, with its owners."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[OwnerWire] | None = None


class MemberSpecWire(Struct, rename="camel", gc=False):
    """Specification of a pod."""

    node_name: str | None = None
    scheduler_name: str | None = None
    scheduling_group: SchedulingGroup | None = None


class MemberConditionWire(Struct, rename="camel", gc=False):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class TerminatedWire(Struct, rename="camel", gc=False):
    """How a container ended."""

    finished_at: str | None = None


class ContainerStateWire(Struct, gc=False):
    """What a container does."""

    terminated: TerminatedWire | None = None


class ContainerStatusWire(Struct, gc=False):
    """Status of a container."""

    state: ContainerStateWire | None = None


class MemberStatusWire(Struct, rename="camel", gc=False):
    """Status of a pod."""

    phase: str | None = None
    conditions: list[MemberConditionWire] | None = None
    init_container_statuses: list[ContainerStatusWire] | None = None
    container_statuses: list[ContainerStatusWire] | None = None


class MemberWire(Struct):
    """A pod."""

    metadata: MemberMeta
    spec: MemberSpecWire
    status: MemberStatusWire | None = None


class GroupMember(msgspec.Struct, frozen=True):
    """A pod and the group that it belongs to; `group` is empty and `member` None if to none."""

    group: str = ""
    member: Member | None = None


_NONE = GroupMember()


def project_member(pod: MemberWire) -> GroupMember:
    """Return the pod as a member; all pods without a group are one value, which costs nothing."""
    group = group_of(pod.metadata.labels or {}, pod.spec.scheduling_group)
    if not group:
        return _NONE
    status = pod.status or MemberStatusWire()
    bound = bool(pod.spec.node_name)
    refusal = ""
    if not bound:
        for condition in status.conditions or ():
            # A pod that is gated is not scheduled either, and nobody tried it.
            if condition.type == "PodScheduled" and condition.reason == UNSCHEDULABLE:
                refusal = condition.message or ""
    return GroupMember(
        group,
        Member(
            name=pod.metadata.name,
            phase=status.phase or "Pending",
            bound=bound,
            owners=tuple(owner.name for owner in pod.metadata.owner_references or ()),
            refusal=refusal,
            scheduler=pod.spec.scheduler_name or "",
            created=pod.metadata.creation_timestamp or "",
            ended=_ended(status) if status.phase == "Failed" else "",
        ),
    )


def _ended(status: MemberStatusWire) -> str:
    """Return when a pod ended: its last container, or where none ran, its last condition."""
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    ends = [
        c.state.terminated.finished_at or "" for c in containers if c.state and c.state.terminated
    ]
    changes = [c.last_transition_time or "" for c in status.conditions or ()]
    return max(ends, default="") or max(changes, default="")
