"""How much a pod requests, as Kubernetes counts it.

Source: `k8s.io/component-helpers/resource`, PodRequests: the containers and the sidecars together,
or the largest moment of the init phase if that is more; pod-level resources replace the sum;
overhead comes on top.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

#: What scoring assumes of a container that requests none: `GetNonzeroRequests` of kube-scheduler.
SCORED_CPU: Final = 100
SCORED_MEMORY: Final = 200 * 1024 * 1024

_POD_LEVEL = ("cpu", "memory")


class StartsInOrder(Protocol):
    """A container of whatever kind, as far as it matters when it runs."""

    @property
    def init(self) -> bool:
        """Whether it is one of `initContainers`."""
        ...

    @property
    def sidecar(self) -> bool:
        """Whether it is an init container with restartPolicy Always."""
        ...


def ends_first(container: StartsInOrder) -> bool:
    """Return whether the container ends before the next one starts.

    Init containers do, but not sidecars: they keep running beside all that start later.
    """
    return container.init and not container.sidecar


def most_at_once(amounts: Iterable[tuple[StartsInOrder, int]]) -> int:
    """Return the most of a resource that is in use at one moment.

    Args:
        amounts: containers in the order of their start, with what each requests.
    """
    running = peak = 0
    for container, amount in amounts:
        if ends_first(container):
            peak = max(peak, running + amount)
        else:
            running += amount
    return max(peak, running)


class ContainerRequests(msgspec.Struct, frozen=True):
    """A container's requests in base units, and when it runs."""

    requests: Mapping[str, int]
    init: bool = False
    sidecar: bool = False


def pod_requests(
    containers: Sequence[ContainerRequests],
    *,
    overhead: Mapping[str, int] | None = None,
    pod_level: Mapping[str, int] | None = None,
    defaults: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return the pod's requests per resource, in base units.

    Args:
        containers: init containers in their order, then the containers.
        overhead: of the pod's runtime class, added on top.
        pod_level: `spec.resources.requests`, which replace the containers' sum.
        defaults: what to assume of a container that is silent about a resource (used for scoring).
    """
    filled = [{**(defaults or {}), **c.requests} for c in containers]
    total: dict[str, int] = {}
    if len(filled) == 1:  # as most pods are: nothing is beside it
        total = {resource: max(amount, 0) for resource, amount in filled[0].items()}
        filled = []
    for resource in {name for requests in filled for name in requests}:
        amounts = [requests.get(resource, 0) for requests in filled]
        total[resource] = most_at_once(zip(containers, amounts, strict=True))
    total |= {
        resource: amount
        for resource, amount in (pod_level or {}).items()
        if resource in _POD_LEVEL or resource.startswith("hugepages-")
    }
    for resource, amount in (overhead or {}).items():
        total[resource] = total.get(resource, 0) + amount
    return total
