"""How much of the free GPU is in pieces that the workload cannot use: F of FGD.

Source: Weng et al., *Beware of Fragmentation*, USENIX ATC'23, section 3, as their simulator
computes it. A node's F is the free GPU that a pod drawn from the target workload could not use,
on average over the draw.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from alnair.traces.openb import TracePod

#: The target workload is made of the most frequent classes that cover this part of the pods.
COVERED: Final = 0.95


class WorkloadClass(msgspec.Struct, frozen=True, gc=False):
    """Pods alike in what F depends on.

    Attributes:
        share: their part of the target workload (0-1).
        gpus: GPUs that each asks for, with `gpu_milli` thousandths.
        models: that will do, empty = any.
        pods: how many there are; shares are in proportion.
    """

    share: float
    cpu_milli: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...] = ()
    pods: int = 1


class FreeNode(msgspec.Struct, frozen=True, gc=False):
    """What a node has left: thousandths of a core, and of each of its GPUs."""

    cpu_milli: int
    gpu_milli: tuple[int, ...]
    model: str = ""


def target_workload(pods: Sequence[TracePod]) -> tuple[WorkloadClass, ...]:
    """Return the classes of a pod list that make up its target workload, most frequent first.

    Of equally frequent ones the larger goes first, as in their simulator: where the list is cut,
    that decides who is in.
    """
    counts = Counter((p.cpu_milli, p.gpu_milli, p.gpus, p.gpu_spec, p.models) for p in pods)
    by_size = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
    kept: list[tuple[tuple[int, int, int, str, tuple[str, ...]], int]] = []
    covered = 0
    for key, count in by_size:
        if covered >= COVERED * len(pods):
            break
        kept.append((key, count))
        covered += count
    # Divided twice, as their simulator does: the last bit counts where F is compared.
    part = covered / len(pods) if pods else 1.0
    return tuple(
        WorkloadClass(count / len(pods) / part, cpu, gpus, milli, models, count)
        for (cpu, milli, gpus, _, models), count in kept
    )


def fragmentation(nodes: Iterable[FreeNode], workload: Sequence[WorkloadClass]) -> float:
    """Return F of a cluster in milli-GPUs."""
    # Most nodes of a large cluster are in few states (empty, full): each state is computed once.
    states = Counter(
        FreeNode(node.cpu_milli, tuple(sorted(node.gpu_milli)), node.model) for node in nodes
    )
    return sum(count * node_fragmentation(node, workload) for node, count in states.items())


def node_fragmentation(node: FreeNode, workload: Sequence[WorkloadClass]) -> float:
    """Return F of one node in milli-GPUs: free and of no use, on average over the workload."""
    free = sum(node.gpu_milli)
    if not free:
        return 0.0
    return sum(wanted.share * (free - _usable(node, wanted)) for wanted in workload)


def _usable(node: FreeNode, wanted: WorkloadClass) -> int:
    """Return the free milli-GPUs that the class can use; 0 if its pods do not fit on the node."""
    if (
        not wanted.gpus
        or node.cpu_milli < wanted.cpu_milli
        or (wanted.models and node.model not in wanted.models)
    ):
        return 0
    large = [left for left in node.gpu_milli if left >= wanted.gpu_milli]
    return sum(large) if len(large) >= wanted.gpus else 0
