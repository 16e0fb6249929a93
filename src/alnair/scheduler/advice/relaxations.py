"""Single changes of a pod that may let it fit, one generator per predicate.

Whether one does is for a trial to say (`alnair.scheduler.advice.trial`).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.model import names
from alnair.model.cluster import Taint
from alnair.model.gpu_demand import LEAST_MEMORY_MIB
from alnair.model.workload import GpuDemand, NodeAffinity, PodSpec, Requirement, Term, Toleration
from alnair.scheduler.state.nodes.columns import Columns
from alnair.scheduler.state.nodes.tolerations import tolerated

_MIB: Final = 1024 * 1024
_TAINTS: Final = 8
_HARD: Final = ("NoSchedule", "NoExecute")
_OF_GPUS: Final = (names.GPU, names.VGPU_MEMORY, names.VGPU_COMPUTE, names.VGPU)


class Relaxation(msgspec.Struct, frozen=True):
    """A change that drops or softens something; `size` orders changes, the smallest first."""

    kind: str
    text: str
    size: float
    spec: PodSpec


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


def relaxations(spec: PodSpec, columns: Columns, refusing: set[str]) -> Iterator[Relaxation]:
    """Return the changes that concern plugins which refuse some node."""
    if "TaintToleration" in refusing:
        yield from _tolerations(spec, columns)
    if "NodeUnschedulable" in refusing:
        cordon = Toleration("node.kubernetes.io/unschedulable", "Exists")
        tolerations = (*spec.tolerations, cordon)
        yield Relaxation(
            "uncordon", "uncordon {node}", 0.25, replace(spec, tolerations=tolerations)
        )
    if "NodeAffinity" in refusing:
        yield from _selectors(spec)
        yield from _terms(spec)
    if "PodTopologySpread" in refusing:
        yield from _spreads(spec)
    if "InterPodAffinity" in refusing:
        yield from _neighbours(spec)
    if "NodePorts" in refusing:
        yield from _ports(spec)
    if spec.gpu:
        yield from _models(spec, spec.gpu)


def reductions(spec: PodSpec) -> Iterator[Reduction]:
    """Return what could be asked for less of."""
    if spec.gpu:
        yield from _gpu_reductions(spec, spec.gpu)
    for resource, asked in spec.requests:
        if resource == "pods" or (spec.gpu and resource in _OF_GPUS):
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


def _tolerations(spec: PodSpec, columns: Columns) -> Iterator[Relaxation]:
    taints: Counter[Taint] = Counter(
        taint
        for node in columns.nodes
        if node is not None
        for taint in node.taints
        if taint.effect in _HARD and not tolerated(taint, spec.tolerations, comparing=False)
    )
    for taint, _ in taints.most_common(_TAINTS):
        toleration = Toleration(taint.key, "Equal", taint.value, taint.effect)
        value = f"={taint.value}" if taint.value else ""
        yield Relaxation(
            "toleration",
            f"tolerate the taint {taint.key}{value}:{taint.effect}",
            0.25,
            replace(spec, tolerations=(*spec.tolerations, toleration)),
        )


def _selectors(spec: PodSpec) -> Iterator[Relaxation]:
    for pair in spec.node_selector:
        rest = tuple(p for p in spec.node_selector if p != pair)
        text = f"drop {pair[0]}={pair[1]} from the node selector"
        yield Relaxation("node-selector", text, 0.45, replace(spec, node_selector=rest))


def _terms(spec: PodSpec) -> Iterator[Relaxation]:
    affinity = spec.affinity
    for i, term in enumerate(affinity.required or () if affinity else ()):
        assert affinity is not None
        assert affinity.required is not None
        for j, requirement in enumerate((*term.labels, *term.fields)):
            shorter = _without(term, j)
            # A term without requirements would match nothing; one that must match anything goes.
            required = tuple(shorter if k == i else t for k, t in enumerate(affinity.required))
            softer: NodeAffinity = replace(
                affinity, required=required if shorter.labels or shorter.fields else None
            )
            text = f"drop {_said(requirement)} from the required node affinity"
            yield Relaxation("node-affinity", text, 0.5, replace(spec, affinity=softer))


def _without(term: Term, index: int) -> Term:
    labels = tuple(r for k, r in enumerate(term.labels) if k != index)
    fields = tuple(r for k, r in enumerate(term.fields) if k + len(term.labels) != index)
    return Term(labels, fields)


def _said(requirement: Requirement) -> str:
    values = f" {', '.join(requirement.values)}" if requirement.values else ""
    return f"'{requirement.key} {requirement.operator}{values}'"


def _spreads(spec: PodSpec) -> Iterator[Relaxation]:
    for i, constraint in enumerate(spec.spread):
        if constraint.hard:
            softer = replace(constraint, hard=False, min_domains=None)
            spread = tuple(softer if k == i else c for k, c in enumerate(spec.spread))
            text = f"spread over {constraint.topology_key} with whenUnsatisfiable: ScheduleAnyway"
            yield Relaxation("topology-spread", text, 0.35, replace(spec, spread=spread))


def _neighbours(spec: PodSpec) -> Iterator[Relaxation]:
    affinity = spec.pod_affinity
    if affinity is None:
        return
    for field, softer_field, size, what in (
        ("anti_required", "anti_preferred", 0.4, "pod anti-affinity"),
        ("required", "preferred", 0.5, "pod affinity"),
    ):
        terms = getattr(affinity, field)
        for i, term in enumerate(terms):
            rest = tuple(t for k, t in enumerate(terms) if k != i)
            said = " and ".join(map(_said, term.selector.requirements if term.selector else ()))
            text = f"prefer instead of require {what} by {term.topology_key} to pods with {said}"
            preferred = (*getattr(affinity, softer_field), replace(term, weight=100))
            softer = replace(affinity, **{field: rest, softer_field: preferred})
            yield Relaxation("pod-affinity", text, size, replace(spec, pod_affinity=softer))


def _ports(spec: PodSpec) -> Iterator[Relaxation]:
    for port in spec.ports:
        rest = tuple(p for p in spec.ports if p != port)
        text = f"drop the host port {port.port}/{port.protocol}"
        yield Relaxation("host-port", text, 0.4, replace(spec, ports=rest))
