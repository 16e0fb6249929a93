"""What the scheduler decides to do: values that a live process or a simulator carries out."""

from typing import Final, Literal

import msgspec

from alnair.model.volumes import ClaimBinding
from alnair.model.workload import Gang, Planned, Pod, PodGpuAssignment


class Bind(msgspec.Struct, frozen=True):
    """Bind the pod to the node; the assignment goes into the same write.

    What its claims get is written, and must be bound within `patience` (seconds), before the pod
    is. Of pods with the same `together` none is bound before all of them have their storage.
    """

    pod: Pod
    node: str
    assignment: PodGpuAssignment = ()
    claims: tuple[ClaimBinding, ...] = ()
    patience: float = 0.0
    together: str = ""


class WritePlan(msgspec.Struct, frozen=True):
    """Write the gang's plan to its PodGroup; its Bind actions follow when that is done."""

    gang: Gang
    plan: dict[str, Planned]


class Evict(msgspec.Struct, frozen=True):
    """Evict the pod; `reason` is a CamelCase word, `message` says why."""

    pod: Pod
    reason: str
    message: str


class Nominate(msgspec.Struct, frozen=True):
    """Note on the pod that room is held for it on this node; empty: on none any more."""

    pod: Pod
    node: str


class Report(msgspec.Struct, frozen=True):
    """Tell the pod's owner what became of it: by an event and, for a refusal, a condition."""

    pod: Pod
    kind: Literal["Scheduled", "AnnotationIgnored", "FailedScheduling"]
    message: str


#: Reason of evictions that make room for pods of higher priority.
PREEMPTED: Final = "Preempted"

Action = Bind | WritePlan | Evict | Nominate | Report
