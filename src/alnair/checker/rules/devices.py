"""No GPU is promised twice: memory and compute of its slices, whole GPUs to one container each."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from alnair.checker.objects import api_names
from alnair.checker.objects.amounts import shown
from alnair.checker.objects.assignments import Part
from alnair.checker.objects.nodes import CheckedGpu, CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.requests import moments
from alnair.checker.violation import Violation


def _shares(gpu: CheckedGpu, pods: Sequence[CheckedPod]) -> list[tuple[CheckedPod, list[Part]]]:
    """Return the pods that have a part of the GPU, with their parts."""
    found = []
    for pod in pods:
        parts = [part for part in pod.parts or () if part.uuid == gpu.uuid]
        if parts:
            found.append((pod, parts))
    return found


def _most(pod: CheckedPod, parts: Sequence[Part], field: str) -> int:
    """Return the most that the pod's slices use of the GPU at one moment."""
    by_container: dict[str, int] = {}
    for part in parts:
        if not part.whole:
            amount: int = getattr(part, field)
            by_container[part.container] = by_container.get(part.container, 0) + amount
    return max(sum(by_container.get(c.name, 0) for c in now) for now in moments(pod.containers))


def gpu_memory(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """The slices of a GPU fit its memory (MiB)."""
    for gpu in node.gpus.values():
        used = sum(_most(pod, parts, "memory_mib") for pod, parts in _shares(gpu, pods))
        if used > gpu.memory_mib:
            yield Violation(
                "gpu-memory", api_names.MEMORY, node.name, gpu.uuid, used, gpu.memory_mib
            )


def gpu_compute(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """All slices of a GPU together stay below what the node publishes per GPU (percent)."""
    limit = max(Fraction(100), 100 * node.compute_factor())
    for gpu in node.gpus.values():
        used = sum(_most(pod, parts, "compute") for pod, parts in _shares(gpu, pods))
        if used > limit:
            yield Violation(
                "gpu-compute", api_names.COMPUTE, node.name, gpu.uuid, used, shown(limit)
            )


def gpu_compute_hard(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """The hard limits of a GPU's slices never add up to more than the GPU (percent)."""
    for gpu in node.gpus.values():
        shares = _shares(gpu, pods)
        used = sum(_most(pod, parts, "compute") for pod, parts in shares if not pod.soft)
        if used > 100:
            yield Violation("gpu-compute-hard", api_names.COMPUTE, node.name, gpu.uuid, used, 100)


def gpu_exclusive(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """Who has a whole GPU has it alone (parts on the GPU at one moment)."""
    for gpu in node.gpus.values():
        shares = _shares(gpu, pods)
        if not any(part.whole for _, parts in shares for part in parts):
            continue
        if len(shares) > 1:
            yield Violation("gpu-exclusive", api_names.WHOLE, node.name, gpu.uuid, len(shares), 1)
            continue
        pod, parts = shares[0]
        for together in moments(pod.containers):
            running = {container.name for container in together}
            now = [part for part in parts if part.container in running]
            if len(now) > 1 and any(part.whole for part in now):
                yield Violation("gpu-exclusive", pod.title, node.name, gpu.uuid, len(now), 1)
                break


def gpu_count(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """There are GPUs enough for the assigned ones and for the whole ones that nobody assigned.

    Another scheduler's pod has no assignment: which GPU it gets is the kubelet's choice, but it
    needs one that no assignment names.
    """
    if not node.gpus:
        return
    named = {part.uuid for pod in pods for part in pod.parts or ()} & node.gpus.keys()
    unnamed = sum(
        (pod.needs.get(api_names.WHOLE, Fraction(0)) for pod in pods if pod.parts is None),
        Fraction(0),
    )
    used = len(named) + unnamed
    if unnamed and used > len(node.gpus):
        yield Violation(
            "gpu-count", api_names.WHOLE, node.name, used=shown(used), limit=len(node.gpus)
        )
