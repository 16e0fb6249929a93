"""What cannot be had is not placed: whole GPUs and slices at once, claims nobody allocates for."""

from collections.abc import Iterator

from alnair.checker.objects import api_names
from alnair.checker.objects.amounts import shown
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.requests import CheckedContainer, most
from alnair.checker.violation import Violation


def possible_request(pod: CheckedPod, node: CheckedNode | None) -> Iterator[Violation]:
    """A bound pod of ours asks for GPUs in a way that some GPU could satisfy."""
    if not pod.ours:
        return
    for said, limit in _impossible(pod):
        yield Violation(
            "possible-request", pod.title, node.name if node else pod.node, used=said, limit=limit
        )


def claims_allocated(pod: CheckedPod, node: CheckedNode | None) -> Iterator[Violation]:
    """A bound pod of ours claims no devices: our schedulers do not allocate them."""
    if pod.ours and pod.device_claims:
        yield Violation(
            "claims-allocated",
            pod.title,
            node.name if node else pod.node,
            used=f"resourceClaims {', '.join(pod.device_claims)}",
            limit="none",
        )


def _impossible(pod: CheckedPod) -> Iterator[tuple[str, str]]:
    for container in pod.containers:
        for said, limit in _in_container(container):
            yield f"container {container.name}: {said}", limit
    together = most(pod.containers, api_names.COMPUTE)
    if together > 100 and all(c.amounts.get(api_names.COMPUTE, 0) <= 100 for c in pod.containers):
        yield f"containers together: {shown(together)} % of one GPU", "100 %"
    for name, models in ((api_names.MODELS, pod.models), (api_names.MODELS_NOT, pod.models_not)):
        if name not in pod.annotations:
            continue
        if not models:
            yield f"{name} is empty", "a GPU model"
        if not pod.wants_gpus:
            yield f"0 GPUs with {name} {', '.join(models)}", "a request for a GPU"
    if both := set(pod.models) & set(pod.models_not):
        yield f"{', '.join(sorted(both))} accepted and refused", "one of both"
    for name, values in api_names.CHOICES:
        value = pod.annotations.get(name, values[0])
        if value not in values:
            yield f"{name} {value!r}", " or ".join(values)
    if pod.wants_gpus:
        yield from _beyond(pod)


def _beyond(pod: CheckedPod) -> Iterator[tuple[str, str]]:
    """What is wrong with memory beyond slices."""
    policy = pod.annotations.get(api_names.MEMORY_POLICY)
    swaps = policy == "swap"
    text = pod.annotations.get(api_names.HOST_MEMORY)
    if text is not None and not swaps:
        yield f"{api_names.HOST_MEMORY} {text!r}", f"{api_names.MEMORY_POLICY} swap"
    elif text is not None and not (
        text.isascii()
        and text.isdecimal()
        and not text.startswith("0")
        and api_names.LEAST_MEMORY <= int(text) <= api_names.MOST_MEMORY
    ):
        yield f"{api_names.HOST_MEMORY} {text!r}", f"{api_names.LEAST_MEMORY} MiB and more"
    if policy in {"swap", "soft"} and not any(
        c.amounts.get(api_names.MEMORY) for c in pod.containers
    ):
        yield f"{api_names.MEMORY_POLICY} {policy!r} without a slice", "a slice of a GPU"


def _in_container(container: CheckedContainer) -> Iterator[tuple[str, str]]:
    whole, memory, compute = (
        container.amounts.get(resource, 0)
        for resource in (api_names.WHOLE, api_names.MEMORY, api_names.COMPUTE)
    )
    if whole and (memory or compute):
        yield "whole GPUs and a slice", "one of them"
    if compute and not memory:
        yield f"{api_names.COMPUTE} without {api_names.MEMORY}", "both"
    if compute > 100:
        yield f"{compute} % of one GPU", "100 %"
    if 0 < memory < api_names.LEAST_MEMORY:
        yield f"{memory} MiB", f"at least {api_names.LEAST_MEMORY} MiB"
