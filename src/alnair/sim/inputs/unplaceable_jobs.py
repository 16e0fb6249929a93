"""Pods that no node can ever take: they would wait for ever, which is seldom meant."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.workload import GpuDemand, LabelSelector, PodSpec, Requirement
from alnair.scheduler.state.pods.label_selectors import matches
from alnair.sim.jobs import Job

#: So many kinds of pods are told one by one.
_SHOWN = 10
_EXACT = frozenset(("In", "NotIn", "Exists", "DoesNotExist"))


class _Kind(msgspec.Struct, frozen=True):
    """Nodes that are alike: amounts, (model, MiB) of the GPUs, and the labels that pods name."""

    amounts: tuple[tuple[str, int], ...]
    gpus: tuple[tuple[str, int], ...]
    labels: tuple[tuple[str, str], ...]


def warnings(jobs: Iterable[Job], nodes: Sequence[Node]) -> list[str]:
    """Return a line per kind of pod, and per gang, that not even an empty cluster can take.

    Amounts, GPUs and node labels are looked at; taints, volumes and other pods are not.
    """
    jobs = list(jobs)
    pods = [pod for job in jobs for pod in job.pods]
    counts: dict[PodSpec, int] = {}
    first: dict[PodSpec, str] = {}
    for pod in pods:
        counts[pod.spec] = counts.get(pod.spec, 0) + 1
        first.setdefault(pod.spec, pod.name)
    keys = {r.key for spec in counts for term in _selectors(spec) for r in term}
    kinds = {_kind(node, keys) for node in nodes}
    found = [f"pod {pod.name!r} will wait for ever: {pod.problem}" for pod in pods if pod.problem]
    for spec, count in counts.items():
        reasons = {_reason(spec, kind) for kind in kinds} or {"no room: there is none"}
        if "" in reasons:
            continue
        more = f" and {count - 1} like it" if count > 1 else ""
        why = "; ".join(sorted(reasons))
        found.append(f"pod {first[spec]!r}{more} will wait for ever, every node has {why}")
    found += _too_large(jobs, nodes)
    if len(found) > _SHOWN:
        found[_SHOWN:] = [f"… and {len(found) - _SHOWN} more that can never be placed"]
    return found


def _too_large(jobs: Iterable[Job], nodes: Sequence[Node]) -> Iterator[str]:
    """Yield gangs whose least number of pods asks for more than the whole cluster has."""
    there: Counter[str] = Counter()
    for node in nodes:
        there.update(node.allocatable)
    for job in jobs:
        if job.gang is None:
            continue
        asked: Counter[str] = Counter()
        for pod in job.pods[: job.gang.min_member]:
            asked.update(dict(pod.spec.requests))
        short = [name for name, amount in asked.items() if amount > there[name]]
        if short:
            yield (
                f"job {job.name!r} will wait for ever: its {job.gang.min_member} pods together ask "
                f"for more {short[0]} than the whole cluster has"
            )


def _selectors(spec: PodSpec) -> list[tuple[Requirement, ...]]:
    """Return what a node's labels must satisfy: any of these; empty if there is no condition."""
    selected = tuple(Requirement(key, "In", (value,)) for key, value in spec.node_selector)
    required = spec.affinity.required if spec.affinity else None
    if required is None:
        return [selected] if selected else []
    # Gt, Lt and fields are rare: a term with them counts as satisfied.
    return [
        (*selected, *(r for r in term.labels if r.operator in _EXACT))
        for term in required
        if term.labels or term.fields
    ] or [(Requirement("", "Exists"),)]


def _kind(node: Node, keys: set[str]) -> _Kind:
    return _Kind(
        tuple(sorted(node.allocatable.items())),
        tuple(sorted((gpu.model, gpu.memory_mib) for gpu in node.gpus)),
        tuple(sorted((key, value) for key, value in node.labels.items() if key in keys)),
    )


def _reason(spec: PodSpec, kind: _Kind) -> str:
    """Return why a pod cannot go to an empty node of this kind; empty if it can."""
    amounts = dict(kind.amounts)
    for resource, amount in spec.requests:
        # What a node has as GPUs is judged with its GPUs.
        if resource not in names.GPU_RESOURCES and amount > amounts.get(resource, 0):
            asked = f"{amount / 1000:g}" if resource == "cpu" else f"{amount}"
            return f"too little {resource} (it asks for {asked})"
    selectors = _selectors(spec)
    if selectors and not any(matches(LabelSelector(s), dict(kind.labels)) for s in selectors):
        return "other labels than it asks for"
    return _gpu_reason(spec.gpu, kind) if spec.gpu is not None else ""


def _gpu_reason(demand: GpuDemand, kind: _Kind) -> str:
    if demand.problem:
        return demand.problem
    accepted = sorted(memory for model, memory in kind.gpus if demand.accepts(model))
    wanted = demand.whole + bool(demand.memory_mib)
    if len(accepted) < wanted:
        return f"too few GPUs that it accepts (it asks for {wanted})"
    if demand.memory_mib and accepted[-1] < demand.memory_mib:
        return f"too little GPU memory (it asks for {demand.memory_mib} MiB)"
    return ""
