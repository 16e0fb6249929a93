"""What is known of a node when a container is about to start: GPUs, pods, allocations, starts."""

from collections.abc import Mapping

import msgspec

from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.model.job_facts import Declared
from alnair.model.workload import GpuDemand


class NodeGpu(msgspec.Struct, frozen=True):
    """A GPU of this node.

    Attributes:
        uuid: Names it everywhere.
        index: Its number on the node.
        memory_mib: All of its memory.
        numa: The NUMA node that it is near to; None if that is not known.
        model: Its name; empty if that is not known, and then it is one that every pod accepts.
        problem: Why nothing may start on it; empty if something may.
        may_be_sliced: Not in MIG mode.
    """

    uuid: str
    index: int
    memory_mib: int
    numa: int | None = None
    model: str = ""
    problem: str = ""
    may_be_sliced: bool = True


class PodOnNode(msgspec.Struct, frozen=True):
    """A pod that is bound to this node, as the API server has it.

    Attributes:
        uid: The same as the kubelet's.
        namespace: Where it is,
        name: and what it is called there.
        created: When, in seconds since the epoch.
        demand: What it asks of GPUs; None if nothing.
        assignment: Which GPUs it was given; None if nobody chose.
        assignment_problem: Why the assignment cannot be read; empty if it can.
        is_ended: Its phase is Succeeded or Failed.
        is_leaving: It is being deleted.
        containers: The runtime's ids of its containers → their names.
        owner: Kind and name of its controller; empty without one.
        reads_log: Whether its log may be read.
        log_pattern: How lines of its log say how far it is; empty for all known formats.
        counts_calls: Whether calls of CUDA are to be counted on its whole GPUs.
        is_suspended: Its slices are to rest in the host's memory.
        declared: What its specification says of model and input.
    """

    uid: str
    namespace: str
    name: str
    created: float
    demand: GpuDemand | None = None
    assignment: GpuAssignment | None = None
    assignment_problem: str = ""
    is_ended: bool = False
    is_leaving: bool = False
    containers: Mapping[str, str] = {}
    owner: tuple[str, str] = ("", "")
    reads_log: bool = True
    log_pattern: str = ""
    counts_calls: bool = False
    is_suspended: bool = False
    declared: Declared = Declared()

    @property
    def title(self) -> str:
        """How to call it in a sentence."""
        return f"pod {self.namespace}/{self.name}"

    @property
    def assigned(self) -> Mapping[str, list[AssignedGpu]]:
        """Container → its parts of GPUs; empty if nobody chose."""
        return self.assignment.containers if self.assignment else {}


class Allocation(msgspec.Struct, frozen=True):
    """What the kubelet allocated to a container: an entry of its checkpoint.

    Attributes:
        pod_uid: Of the pod.
        container: Its name.
        resource: Such as `nvidia.com/gpu`.
        ids: Of the devices; an init container's come again in a container after it.
        device: The CDI name that `Allocate` answered.
    """

    pod_uid: str
    container: str
    resource: str
    ids: frozenset[str]
    device: str


#: Pod uid → container → parts, of all containers whose start was allowed and whose pod may still
#: have processes.
Started = Mapping[str, Mapping[str, tuple[AssignedGpu, ...]]]


def stays(pod: PodOnNode | None) -> bool:
    """Return whether a pod stays; one that is unknown was deleted and may still have processes."""
    return pod is not None and not pod.is_ended and not pod.is_leaving
