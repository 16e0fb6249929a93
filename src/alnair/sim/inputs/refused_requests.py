"""Requests of containers that the API server refuses, so that no answer is about such a pod."""

from collections.abc import Iterator

from alnair.kube.objects.wire import PodSpecWire
from alnair.model.names import VGPU_MEMORY
from alnair.model.quantity import NANO, QuantityError, nanos
from alnair.scheduler.framework.allocation_scores import is_extended


def refused_requests(spec: PodSpecWire) -> Iterator[tuple[str, str]]:
    """Return where in a pod's spec devices are asked for as nobody can, and why not.

    Kubernetes has whole devices only, and as many are requested as are the limit.
    """
    for field, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for i, container in enumerate(containers or ()):
            if container.resources is None:
                continue
            path = f"{field}[{i}].resources"
            limits, requests = container.resources.limits or {}, container.resources.requests or {}
            for name in filter(is_extended, dict.fromkeys((*limits, *requests))):
                limit, request = _amount(limits.get(name)), _amount(requests.get(name))
                if limit is None and request:
                    yield f"{path}.requests", f"{name} has no limit: write it as a limit"
                elif limit is not None and limit % NANO:
                    what = f"{name}: {limits[name]!r} is no whole number: write one"
                    yield f"{path}.limits", f"{what}, or ask for a slice by {VGPU_MEMORY}"
                elif request is not None and request != limit:
                    yield f"{path}.requests", f"{name} differs from its limit: leave it away"


def _amount(text: str | int | None) -> int | None:
    """Return an amount in nanos; None for one that is missing, or that others complain of."""
    try:
        return None if text is None else nanos(text)
    except QuantityError:
        return None
