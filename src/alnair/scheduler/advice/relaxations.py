"""Single changes of a pod that may let it fit: those that plugins know of, and smaller requests.

Whether one does is for a trial to say (`alnair.scheduler.advice.trial`).
"""

from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.model import names
from alnair.model.gpu_demand import LEAST_MEMORY_MIB
from alnair.model.workload import GpuDemand, PodSpec
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.state.cluster import Cluster

_MIB: Final = 1024 * 1024


class Reduction(msgspec.Struct, frozen=True):
    """A smaller amount of one thing; which one fits is to be found.

    Attributes:
        what: of which resource, for people.
        asked, least: amounts in units; less than `least` makes no sense.
        show: says an amount.
        spec: the spec with another amount.
    """

    kind: str
    what: str
    asked: int
    least: int
    show: Callable[[int], str]
    spec: Callable[[int], PodSpec]

    def relaxation(self, amount: int) -> Relaxation:
        """Return the change to this amount."""
        text = f"ask for {self.show(amount)} of {self.what} instead of {self.show(self.asked)}"
        size = (self.asked - amount) / self.asked
        return Relaxation(self.kind, text, size, self.spec(amount))


def relaxations(
    spec: PodSpec, profile: Profile, cluster: Cluster, refusing: Container[str]
) -> Iterator[Relaxation]:
    """Return the changes that concern plugins which refuse some node."""
    for plugin in profile.relaxers:
        if plugin.name in refusing:
            yield from plugin.relaxations(spec, cluster)
    if spec.gpu:
        yield from _models(spec, spec.gpu)


def reductions(spec: PodSpec) -> Iterator[Reduction]:
    """Return what could be asked for less of."""
    if spec.gpu:
        yield from _gpu_reductions(spec, spec.gpu)
    for resource, asked in spec.requests:
        if resource == "pods" or (spec.gpu and resource in names.GPU_RESOURCES):
            continue
        unit = _MIB if resource in ("memory", "ephemeral-storage") else 1
        if unit > 1:
            asked = -(-asked // unit)
        if _owners(spec, resource) > 1:
            continue  # several containers ask for it: which one shall ask for less?
        yield Reduction(
            "request",
            resource,
            asked,
            1,
            _shown(resource),
            partial(_scaled, spec, resource, unit),
        )


def _scaled(spec: PodSpec, resource: str, unit: int, amount: int) -> PodSpec:
    return _with_request(spec, resource, amount * unit)


def _shown(resource: str) -> Callable[[int], str]:
    suffix = {"cpu": "m", "memory": "Mi", "ephemeral-storage": "Mi"}.get(resource, "")
    return lambda amount: f"{amount}{suffix}"


def _owners(spec: PodSpec, resource: str) -> int:
    return sum(any(name == resource for name, _ in part.requests) for part in spec.containers)


def _with_request(spec: PodSpec, resource: str, amount: int) -> PodSpec:
    def less(requests: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        return tuple((n, min(a, amount) if n == resource else a) for n, a in requests)

    return replace(
        spec,
        requests=less(spec.requests),
        containers=tuple(replace(p, requests=less(p.requests)) for p in spec.containers),
    )


def _gpu_reductions(spec: PodSpec, demand: GpuDemand) -> Iterator[Reduction]:
    for field, resource, least, unit in (
        ("whole", names.GPU, 1, ""),
        ("memory_mib", names.VGPU_MEMORY, LEAST_MEMORY_MIB, " MiB"),
        ("compute", names.VGPU_COMPUTE, 1, " %"),
    ):
        asking = [r for r in demand.requests if getattr(r, field)]
        if len(asking) != 1 or _owners(spec, resource) > 1:
            continue  # several containers ask for it: which one shall ask for less?

        def less(amount: int, field: str = field, resource: str = resource) -> PodSpec:
            requests = tuple(
                replace(r, **{field: amount}) if getattr(r, field) else r for r in demand.requests
            )
            changed = replace(demand, requests=requests, **{field: amount})
            return replace(_with_request(spec, resource, amount), gpu=changed)

        yield Reduction("gpu", resource, getattr(demand, field), least, f"{{}}{unit}".format, less)


def _models(spec: PodSpec, demand: GpuDemand) -> Iterator[Relaxation]:
    for field, annotation in (("models", names.GPU_MODELS), ("models_not", names.GPU_MODELS_NOT)):
        if models := getattr(demand, field):
            text = f"drop the annotation {annotation}={','.join(models)}"
            changed = replace(spec, gpu=replace(demand, **{field: ()}))
            yield Relaxation("gpu-model", text, 0.3, changed)
