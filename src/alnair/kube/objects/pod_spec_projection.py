"""From API objects: all of a pod that decides where it can go."""

from collections.abc import Mapping, Sequence

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.amounts import base_units
from alnair.kube.objects.images_and_ports import host_ports, pod_images
from alnair.kube.objects.selectors_and_affinity import (
    node_affinity,
    pod_affinity,
    spread_constraint,
)
from alnair.kube.objects.start_order import in_start_order
from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.model.pod_requests import SCORED_CPU, SCORED_MEMORY, ContainerRequests, pod_requests
from alnair.model.workload import (
    ContainerPart,
    PodSpec,
    Toleration,
)


def pod_spec(spec: wire.PodSpecWire, annotations: Mapping[str, str]) -> PodSpec:
    """Return all of a pod that decides where it can go.

    Raises:
        QuantityError: a quantity does not parse.
        ValueError: a resource request is negative.
    """
    requests = []
    gpus = []
    resources = []
    for container, init, sidecar in in_start_order(spec):
        read = _read(container.resources)
        resources.append(read)
        amounts = _container_requests(container.name, read)
        requests.append(ContainerRequests(amounts, init, sidecar))
        if any(name in amounts for name in names.GPU_REQUESTS):
            gpus.append(ContainerGpus(container.name, amounts, init, sidecar))
    overhead = base_units(spec.overhead)
    of_pod = _read(spec.resources)
    pod_level = of_pod.requests
    total = pod_requests(requests, overhead=overhead, pod_level=pod_level)
    scored = pod_requests(
        requests,
        overhead=overhead,
        pod_level=pod_level,
        defaults={"cpu": SCORED_CPU, "memory": SCORED_MEMORY},
    )
    total["pods"] = 1
    return PodSpec(
        requests=tuple(sorted((name, amount) for name, amount in total.items() if amount)),
        scored_cpu=scored.get("cpu", 0),
        scored_memory=scored.get("memory", 0),
        node_selector=tuple(sorted((spec.node_selector or {}).items())),
        affinity=node_affinity(spec.affinity),
        tolerations=tuple(
            Toleration(t.key or "", t.operator or "Equal", t.value or "", t.effect or "")
            for t in spec.tolerations or ()
        ),
        gpu=gpu_demand(gpus, annotations),
        spread=tuple(map(spread_constraint, spec.topology_spread_constraints or ())),
        pod_affinity=pod_affinity(spec.affinity),
        guaranteed=_guaranteed([of_pod] if of_pod.limits or of_pod.requests else resources),
        containers=_parts(requests, total),
        ports=host_ports(spec),
        **pod_images(spec),
    )


def _parts(
    containers: list[ContainerRequests], total: Mapping[str, int]
) -> tuple[ContainerPart, ...]:
    parts = tuple(
        ContainerPart(
            tuple(sorted((name, amount) for name, amount in c.requests.items() if amount)),
            c.init,
            c.sidecar,
        )
        for c in containers
    )
    if (
        len(parts) == 1
        and not parts[0].init
        and {**dict(parts[0].requests), "pods": 1}
        == {name: amount for name, amount in total.items() if amount}
    ):
        return ()
    return parts


class _Resources(msgspec.Struct, frozen=True, gc=False):
    """Limits and requests in base units: parsed once, for parsing is the dear part of a pod."""

    limits: Mapping[str, int] = {}
    requests: Mapping[str, int] = {}


def _read(resources: wire.ResourceRequirements | None) -> _Resources:
    if resources is None:
        return _Resources()
    limits = base_units(resources.limits)
    if resources.requests == resources.limits:
        return _Resources(limits, limits)
    return _Resources(limits, base_units(resources.requests))


def _guaranteed(parts: Sequence[_Resources]) -> bool:
    """Return whether limits of cpu and memory are there, and what is requested (`GetPodQOS`)."""
    for part in parts:
        for name in ("cpu", "memory"):
            limit = part.limits.get(name, 0)
            if not limit or part.requests.get(name, limit) != limit:
                return False
    return bool(parts)


def _container_requests(container: str, resources: _Resources) -> dict[str, int]:
    # The API server fills in requests from limits; manifests that never met one get the same here.
    amounts = {**resources.limits, **resources.requests}
    for name, amount in amounts.items():
        if amount < 0:
            raise ValueError(
                f"container {container!r} requests a negative amount of {name}: write 0 or more"
            )
    return amounts
