"""What a pod asks of GPUs: read from its containers' limits, and refused where it cannot be meant.

The rules are those of `docs/reference/gpu-requests.md`: the unit of memory is MiB, memory is
required for a slice, a container has whole GPUs or a slice, and the slices of one pod share one
GPU.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Final

import msgspec

from alnair.model import names
from alnair.model.pod_requests import ends_first, most_at_once
from alnair.model.workload import GpuDemand, GpuRequest

#: The least memory of a slice; a smaller number is almost surely meant in GiB, the old unit.
LEAST_MEMORY_MIB: Final = 64
#: 4 TiB, more than a GPU has; a larger number was almost surely written with a suffix, as 8Gi.
MOST_MEMORY_MIB: Final = 4 << 20

#: Annotations that only make sense beside a request for GPUs.
_ABOUT_MODELS: Final = (names.GPU_MODELS, names.GPU_MODELS_NOT, names.GPU_MODEL_WEIGHTS)
#: Annotations with few values: what there is, and what to do about anything else.
_CHOICES: Final = (
    (names.VGPU_POLICY, ("hard", "soft"), "write hard or soft"),
    (names.VGPU_PRIORITY, ("low",), "write low or drop the annotation"),
    (names.VGPU_ISOLATION, ("mps",), "write mps or drop the annotation"),
    (names.VGPU_MEMORY_POLICY, ("strict", "swap", "soft"), "write strict, swap or soft"),
)
_WEIGHT: Final = re.compile(r"[1-9][0-9]?|100")
#: MiB of the host's memory: as much as a slice may have, in digits.
_MIB: Final = re.compile(r"[1-9][0-9]{1,6}")


class ContainerGpus(msgspec.Struct, frozen=True):
    """A container and its GPU resources, in order of the pod's start-up."""

    name: str
    resources: Mapping[str, int]
    init: bool = False
    #: An init container with restartPolicy Always: it keeps running beside the others.
    sidecar: bool = False


def gpu_demand(
    containers: Iterable[ContainerGpus], annotations: Mapping[str, str]
) -> GpuDemand | None:
    """Return what the pod asks of GPUs, or None if it asks for nothing and names no model."""
    order = list(containers)
    requests = tuple(
        GpuRequest(
            container=c.name,
            whole=c.resources.get(names.GPU, 0),
            memory_mib=c.resources.get(names.VGPU_MEMORY, 0),
            compute=c.resources.get(names.VGPU_COMPUTE, 0),
            init=ends_first(c),
        )
        for c in order
        if any(c.resources.get(r) for r in names.GPU_REQUESTS)
    )
    named = [name for name in _ABOUT_MODELS if name in annotations]
    if not requests and not named:
        return None
    weights, weights_problem = _weights(annotations.get(names.GPU_MODEL_WEIGHTS))
    whole, memory, compute = _peak(order)
    demand = GpuDemand(
        requests=requests,
        whole=whole,
        memory_mib=memory,
        compute=compute,
        hard=annotations.get(names.VGPU_POLICY) != "soft",
        models=_models(annotations.get(names.GPU_MODELS, "")),
        models_not=_models(annotations.get(names.GPU_MODELS_NOT, "")),
        weights=weights,
        low_priority=annotations.get(names.VGPU_PRIORITY) == "low",
        mps=annotations.get(names.VGPU_ISOLATION) == "mps",
        swap=annotations.get(names.VGPU_MEMORY_POLICY) == "swap",
        borrows=annotations.get(names.VGPU_MEMORY_POLICY) == "soft",
        host_memory_mib=_host_memory(annotations) or 0,
    )
    problem = (
        _models_problem(demand, named, weights_problem)
        or _choices_problem(annotations)
        or _swap_problem(demand, annotations)
        or _problem(demand, named, {c.name for c in order if _has_mig(c)})
    )
    return msgspec.structs.replace(demand, problem=problem) if problem else demand


def whole_gpus(count: int) -> GpuDemand | None:
    """Return the demand of a container for so many whole GPUs of any model; None for 0."""
    return gpu_demand([ContainerGpus("main", {names.GPU: count})], {})


def _peak(order: list[ContainerGpus]) -> tuple[int, int, int]:
    """Return the most in use at once of (whole GPUs, MiB, percent), as Kubernetes sums requests."""
    whole, memory, compute = (
        most_at_once((c, c.resources.get(resource, 0)) for c in order)
        for resource in names.GPU_REQUESTS
    )
    return whole, memory, compute


def _models(text: str) -> tuple[str, ...]:
    return tuple(sorted({model.strip() for model in text.split(",")} - {""}))


def _weights(text: str | None) -> tuple[tuple[tuple[str, int], ...], str]:
    """Return how much models are liked, or what is wrong with the text."""
    found: dict[str, int] = {}
    for part in () if text is None else text.split(","):
        model, _, weight = (piece.strip() for piece in part.partition("="))
        if not model or not _WEIGHT.fullmatch(weight):
            return (), (
                f"annotation {names.GPU_MODEL_WEIGHTS} has {part.strip()!r}: write MODEL=WEIGHT, "
                "with a weight from 1 to 100, comma-separated"
            )
        if model in found:
            return (), (
                f"annotation {names.GPU_MODEL_WEIGHTS} has {model} twice: give it one weight"
            )
        found[model] = int(weight)
    return tuple(sorted(found.items())), ""


def _models_problem(demand: GpuDemand, named: list[str], weights_problem: str) -> str:
    for name, found in (
        (names.GPU_MODELS, demand.models),
        (names.GPU_MODELS_NOT, demand.models_not),
    ):
        if name in named and not found:
            return f"annotation {name} names no model: write GPU models, comma-separated"
    if both := set(demand.models) & set(demand.models_not):
        return (
            f"annotations {names.GPU_MODELS} and {names.GPU_MODELS_NOT} both name "
            f"{', '.join(sorted(both))}: keep it in one of them"
        )
    return weights_problem


def _choices_problem(annotations: Mapping[str, str]) -> str:
    for name, values, what_to_do in _CHOICES:
        if name in annotations and annotations[name] not in values:
            return f"annotation {name} is {annotations[name]!r}: {what_to_do}"
    return ""


def _host_memory(annotations: Mapping[str, str]) -> int | None:
    """Return the MiB that the pod says; None if it says none, or nothing that can be meant."""
    text = annotations.get(names.VGPU_HOST_MEMORY, "")
    mib = int(text) if _MIB.fullmatch(text) else 0
    return mib if LEAST_MEMORY_MIB <= mib <= MOST_MEMORY_MIB else None


def _swap_problem(demand: GpuDemand, annotations: Mapping[str, str]) -> str:
    if names.VGPU_HOST_MEMORY in annotations and not demand.swap:
        return (
            f"annotation {names.VGPU_HOST_MEMORY} does nothing without the annotation "
            f"{names.VGPU_MEMORY_POLICY}: swap: add that one, or drop this one"
        )
    if names.VGPU_HOST_MEMORY in annotations and _host_memory(annotations) is None:
        return (
            f"annotation {names.VGPU_HOST_MEMORY} is {annotations[names.VGPU_HOST_MEMORY]!r}: "
            f"write MiB as a number, {LEAST_MEMORY_MIB} to {MOST_MEMORY_MIB}, without a suffix"
        )
    beyond = demand.swap or demand.borrows
    if beyond and demand.requests and not any(r.memory_mib for r in demand.requests):
        return (
            f"annotation {names.VGPU_MEMORY_POLICY} is "
            f"{annotations[names.VGPU_MEMORY_POLICY]!r}, but no container asks for a slice "
            "of a GPU, and whole GPUs have no limit to go beyond: add a limit of "
            f"{names.VGPU_MEMORY}, or drop the annotation"
        )
    return ""


def _has_mig(container: ContainerGpus) -> bool:
    return any(n and r.startswith(names.MIG_PREFIX) for r, n in container.resources.items())


def _problem(demand: GpuDemand, named: list[str], with_mig: Container[str]) -> str:
    if not demand.requests:
        return (
            f"annotation {named[0]} asks for a GPU model, but no container asks for a GPU: "
            f"add a limit of {names.GPU} or {names.VGPU_MEMORY}, or drop the annotation"
        )
    for request in demand.requests:
        problem = _container_problem(request, has_mig=request.container in with_mig)
        if problem:
            return f"container {request.container!r} {problem}"
    if demand.compute > 100:
        sharers = ", ".join(r.container for r in demand.requests if r.compute)
        return (
            f"containers {sharers} together ask for {demand.compute} % of the one GPU "
            f"that a pod's slices share: ask for at most 100 in all"
        )
    return ""


def _container_problem(request: GpuRequest, *, has_mig: bool) -> str:
    if has_mig:
        return (
            f"asks for MIG devices ({names.MIG_PREFIX}…) beside whole GPUs or a slice of one, but "
            "CUDA shows nothing else to a container with a MIG device: choose one"
        )
    if request.whole and (request.memory_mib or request.compute):
        return (
            f"asks for whole GPUs ({names.GPU}) and a slice of one "
            f"({names.VGPU_MEMORY}, {names.VGPU_COMPUTE}): choose one"
        )
    if request.compute and not request.memory_mib:
        return (
            f"asks for {names.VGPU_COMPUTE} without {names.VGPU_MEMORY}: "
            "say how many MiB of the GPU it needs"
        )
    if request.compute > 100:
        return (
            f"asks for {request.compute} % of one GPU: {names.VGPU_COMPUTE} is 1 to 100; "
            f"for more than one GPU ask for {names.GPU}"
        )
    if 0 < request.memory_mib < LEAST_MEMORY_MIB:
        return (
            f"asks for {names.VGPU_MEMORY}: {request.memory_mib}, but the unit is MiB and the "
            f"least is {LEAST_MEMORY_MIB}: "
            f"write {request.memory_mib * 1024} for {request.memory_mib} GiB"
        )
    if request.memory_mib > MOST_MEMORY_MIB:
        return (
            f"asks for {names.VGPU_MEMORY}: {request.memory_mib}, but the unit is MiB and no GPU "
            f"has that many: write {request.memory_mib >> 20}, without a suffix, "
            "if bytes were meant"
        )
    return ""
