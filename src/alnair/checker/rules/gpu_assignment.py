"""Our pods with GPUs say which GPUs are theirs, and it is what they asked for."""

from collections.abc import Iterator, Sequence

from alnair.checker.objects import api_names
from alnair.checker.objects.amounts import shown
from alnair.checker.objects.assignments import Part
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.requests import CheckedContainer
from alnair.checker.violation import Violation

Found = Iterator[Violation]


def assignment_present(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """On a node that describes its GPUs, our pod with GPUs has an assignment."""
    if node is None or not node.described or not pod.ours or not pod.wants_gpus:
        return
    if pod.parts is None and not pod.assignment_problem:
        yield Violation(
            "assignment-present", pod.title, node.name, used="none", limit=api_names.ASSIGNMENT
        )


def assignment_readable(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """The assignment is a document as the contract says."""
    if pod.ours and pod.assignment_problem:
        yield Violation(
            "assignment-readable",
            pod.title,
            node.name if node else pod.node,
            used=pod.assignment_problem,
            limit=api_names.ASSIGNMENT,
        )


def gpu_exists(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """Every GPU that is assigned is on that node, under that index."""
    if node is None or not pod.ours:
        return
    for part in pod.parts or ():
        gpu = node.gpus.get(part.uuid)
        if gpu is None:
            yield Violation(
                "gpu-exists", pod.title, node.name, part.uuid, "not on this node", "a GPU of it"
            )
        elif gpu.index != part.index:
            yield Violation(
                "gpu-exists",
                pod.title,
                node.name,
                part.uuid,
                f"index {part.index}",
                f"index {gpu.index}",
            )


def assignment_amounts(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """Each container has just the GPUs that it asked for."""
    if node is None or not pod.ours or pod.parts is None:
        return
    given: dict[str, list[Part]] = {}
    for part in pod.parts:
        given.setdefault(part.container, []).append(part)
    for container in pod.containers:
        parts = given.pop(container.name, [])
        wanted, found = _asked(container), _got(node, parts)
        if wanted != found:
            yield Violation(
                "assignment-amounts",
                f"{pod.title} container {container.name}",
                node.name,
                used=found,
                limit=wanted,
            )
    for name in given:
        yield Violation(
            "assignment-amounts",
            f"{pod.title} container {name}",
            node.name,
            used="GPUs for it",
            limit="no container of this name",
        )


def _asked(container: CheckedContainer) -> str:
    asked = {
        resource: shown(container.amounts[resource]) if container.amounts.get(resource) else 0
        for resource in (api_names.WHOLE, api_names.MEMORY, api_names.COMPUTE)
    }
    slices = [(asked[api_names.MEMORY], asked[api_names.COMPUTE])]
    return _described(asked[api_names.WHOLE], slices if any(slices[0]) else [])


def _got(node: CheckedNode, parts: list[Part]) -> str:
    for part in parts:
        gpu = node.gpus.get(part.uuid)
        if part.whole and gpu and (part.memory_mib, part.compute) != (gpu.memory_mib, 100):
            return f"a whole GPU with {part.memory_mib} MiB and {part.compute} %"
    if len({part.uuid for part in parts}) < len(parts):
        return "the same GPU twice"
    slices = [(part.memory_mib, part.compute) for part in parts if not part.whole]
    return _described(sum(part.whole for part in parts), slices)


def _described(whole: float, slices: Sequence[tuple[float, float]]) -> str:
    parts = [f"{whole} whole"] if whole else []
    parts += [f"a slice of {memory} MiB and {compute} %" for memory, compute in slices]
    return " and ".join(parts) or "nothing"


def slices_together(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """All slices of a pod are of one GPU."""
    if not pod.ours:
        return
    used = {part.uuid for part in pod.parts or () if not part.whole}
    if len(used) > 1:
        yield Violation(
            "slices-together",
            pod.title,
            node.name if node else pod.node,
            used=f"{len(used)} GPUs",
            limit="1 GPU",
        )
