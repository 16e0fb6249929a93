"""From API objects to the nouns of `alnair.model`.

A projector keeps equal parts once: the thousand pods of a job share one `PodSpec`, which is also
what makes them one class for the scheduler. A malformed part never raises; it becomes a `problem`
that names it, since one bad object must not stop the others.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.device_claims import device_claims_problem
from alnair.kube.objects.disks import pod_volumes
from alnair.kube.objects.images_and_ports import host_ports, node_images, pod_images
from alnair.kube.objects.load_annotations import Expectation, agent_lease, read_expected, read_loads
from alnair.kube.pod_groups.gang_labels import group_of, pod_topology, topology_problem
from alnair.kube.timestamps import timestamp
from alnair.model import api_types, names, quantity
from alnair.model.disruption import DisruptionBudget
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.model.nodes import Gpu, Node, Taint
from alnair.model.pod_requests import SCORED_CPU, SCORED_MEMORY, ContainerRequests, pod_requests
from alnair.model.quota import Quota
from alnair.model.workload import (
    ContainerPart,
    Controller,
    GpuPart,
    Labels,
    LabelSelector,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodGpuAssignment,
    PodSpec,
    PodTerm,
    Preference,
    Requirement,
    SpreadConstraint,
    Term,
    Toleration,
)

#: Kinds of owners whose pods belong to their node.
_DAEMONS: Final = ("DaemonSet", "Node")
#: Reason of the condition DisruptionTarget of pods that a scheduler preempts.
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
_GPU_RESOURCES: Final = frozenset((names.GPU, names.VGPU_MEMORY, names.VGPU_COMPUTE))
_FINISHED: Final = ("Succeeded", "Failed")
#: Controllers whose selector says which pods are peers, by the API that they are of.
_CONTROLLERS: Final = {
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
}
#: Distinct specs of a churning cluster must not pile up.
_SPECS_KEPT: Final = 20_000
_assignment_decoder = msgspec.json.Decoder(api_types.GpuAssignment)
_gpu_static_decoder = msgspec.json.Decoder(api_types.GpuStatic)
_utilization_decoder = msgspec.json.Decoder(api_types.PodUtilization)
#: What reading a document raises; the last one, when it is nested without end.
UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def base_units(amounts: Mapping[str, str | int] | None) -> dict[str, int]:
    """Return quantities in base units: millicores for cpu, whole units for all else.

    Raises:
        QuantityError: a quantity does not parse.
    """
    return {
        sys.intern(name): quantity.milli_value(q) if name == "cpu" else quantity.value(q)
        for name, q in (amounts or {}).items()
    }


def check_version(version: int) -> None:
    """Refuse a document of a version that is not ours.

    Raises:
        ValueError: it is another one.
    """
    if version != 1:
        raise ValueError(f"version {version} is not known: expected 1")


class PodProjector:
    """Projects pods; equal specs come out as the same object."""

    def __init__(self) -> None:
        self._specs: dict[PodSpec, PodSpec] = {}
        # Decoding a spec is the dear part, and the pods of a controller differ in nothing that is
        # read here.
        self._by_wire: dict[bytes, tuple[PodSpec, str]] = {}
        self._labels: dict[Labels, Labels] = {}
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode

    def __call__(self, pod: wire.PodWire) -> Pod:
        """Return the pod as scheduling sees it."""
        meta, spec = pod.metadata, pod.spec
        annotations, labels = meta.annotations or {}, meta.labels or {}
        expected = read_expected(annotations)
        shared, problem = self._spec(pod, annotations, expected)
        problem = problem or device_claims_problem(spec)
        if held := pod_volumes(pod):
            shared = self._shared(msgspec.structs.replace(shared, volumes=held))
        assignment: PodGpuAssignment = ()
        if text := annotations.get(names.GPU_ASSIGNMENT):
            try:
                assignment = _assignment(text)
            except UNREADABLE as error:
                problem = f"annotation {names.GPU_ASSIGNMENT} cannot be read: {error}"
        return Pod(
            uid=meta.uid,
            namespace=sys.intern(meta.namespace),
            name=meta.name,
            spec=shared,
            scheduler=sys.intern(spec.scheduler_name or "default-scheduler"),
            created=timestamp(meta.creation_timestamp),
            priority=spec.priority or 0,
            time_limit=spec.active_deadline_seconds or round(expected.duration_s),
            node=sys.intern(spec.node_name) if spec.node_name else "",
            bound_at=_bound_at(pod.status) if spec.node_name else 0.0,
            finished=pod.status is not None and pod.status.phase in _FINISHED,
            deleting=meta.deletion_timestamp is not None,
            gated=bool(spec.scheduling_gates),
            group=group_of(labels, spec.scheduling_group),
            topology=pod_topology(annotations) if annotations else None,
            labels=self._sorted_labels(labels),
            controller=_controller(meta.owner_references),
            assignment=assignment,
            problem=problem or topology_problem(annotations, names.KUEUE_TOPOLOGY_REQUIRED),
            preempts=spec.preemption_policy != "Never",
            nominated=sys.intern((pod.status and pod.status.nominated_node_name) or ""),
            started=timestamp((pod.status and pod.status.start_time) or ""),
            preempted=meta.deletion_timestamp is not None and _preempted(pod.status),
            idle_since=_idle_since(annotations),
            reclaimable=sys.intern(annotations.get(names.RECLAIMABLE, "")),
            owned=any(o.controller and o.kind not in _DAEMONS for o in meta.owner_references or ()),
            daemon=any(o.controller and o.kind in _DAEMONS for o in meta.owner_references or ()),
            evictable=annotations.get(names.EVICTABLE) != "false",
            ignored=expected.ignored,
        )

    def _sorted_labels(self, labels: Mapping[str, str]) -> Labels:
        if not labels:
            return ()
        ordered = tuple(sorted((sys.intern(k), sys.intern(v)) for k, v in labels.items()))
        if len(self._labels) >= _SPECS_KEPT:
            self._labels.clear()
        return self._labels.setdefault(ordered, ordered)

    def _spec(
        self, pod: wire.PodWire, annotations: Mapping[str, str], expected: Expectation
    ) -> tuple[PodSpec, str]:
        spec = pod.spec
        read = (
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.host_network,
            spec.volumes,
            annotations.get(names.GPU_MODELS),
            annotations.get(names.GPU_MODELS_NOT),
            annotations.get(names.GPU_MODEL_WEIGHTS),
            annotations.get(names.VGPU_POLICY),
            expected.util,
            expected.memory_mib,
        )
        key = self._encode(read)
        known = self._by_wire.get(key)
        if known is None:
            try:
                projected, problem = pod_spec(spec, annotations), ""
            except (quantity.QuantityError, ValueError) as error:
                projected, problem = PodSpec(requests=(("pods", 1),)), str(error)
            if len(self._by_wire) >= _SPECS_KEPT:
                self._by_wire.clear()
                self._specs.clear()
            if expected.util or expected.memory_mib:
                projected = msgspec.structs.replace(
                    projected,
                    expected_util=expected.util,
                    expected_memory_mib=expected.memory_mib,
                )
            known = (self._shared(projected), problem)
            self._by_wire[key] = known
        return known

    def _shared(self, spec: PodSpec) -> PodSpec:
        if len(self._specs) >= 2 * _SPECS_KEPT:
            self._specs.clear()
        return self._specs.setdefault(spec, spec)


def _controller(owners: Sequence[wire.OwnerReference] | None) -> Controller | None:
    for owner in owners or ():
        if owner.controller and _CONTROLLERS.get(owner.kind) == owner.api_version:
            return sys.intern(owner.kind), sys.intern(owner.name)
    return None


def _bound_at(status: wire.PodStatusWire | None) -> float:
    # The API server sets this condition in the same write as the node.
    for condition in (status.conditions if status else None) or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            return timestamp(condition.last_transition_time or "")
    return 0.0


def _preempted(status: wire.PodStatusWire | None) -> bool:
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == PREEMPTION_BY_SCHEDULER
        for c in (status.conditions if status else None) or ()
    )


def _idle_since(annotations: Mapping[str, str]) -> float:
    text = annotations.get(names.UTILIZATION)
    if not text:
        return 0.0
    try:
        document = _utilization_decoder.decode(text)
        check_version(document.v)
    except UNREADABLE:
        return 0.0  # what cannot be read is no proof of idleness
    return timestamp(document.idle_since or "")


def pod_spec(spec: wire.PodSpecWire, annotations: Mapping[str, str]) -> PodSpec:
    """Return all of a pod that decides where it can go.

    Raises:
        QuantityError: a quantity does not parse.
        ValueError: a resource request is negative.
    """
    containers = [(c, True, c.restart_policy == "Always") for c in spec.init_containers or ()] + [
        (c, False, False) for c in spec.containers or ()
    ]
    requests = []
    gpus = []
    for container, init, sidecar in containers:
        amounts = _container_requests(container)
        requests.append(ContainerRequests(amounts, init, sidecar))
        if not _GPU_RESOURCES.isdisjoint(amounts):
            gpus.append(ContainerGpus(container.name, amounts, init, sidecar))
    overhead = base_units(spec.overhead)
    pod_level = base_units(spec.resources.requests if spec.resources else None)
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
        affinity=_affinity(spec.affinity),
        tolerations=tuple(
            Toleration(t.key or "", t.operator or "Equal", t.value or "", t.effect or "")
            for t in spec.tolerations or ()
        ),
        gpu=gpu_demand(gpus, annotations),
        spread=tuple(map(_spread, spec.topology_spread_constraints or ())),
        pod_affinity=_pod_affinity(spec.affinity),
        guaranteed=_guaranteed(spec),
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


def _guaranteed(spec: wire.PodSpecWire) -> bool:
    """Return whether limits of cpu and memory are there, and what is requested (`GetPodQOS`)."""
    parts = [c.resources for c in (*(spec.init_containers or ()), *(spec.containers or ()))]
    if spec.resources and (spec.resources.requests or spec.resources.limits):
        parts = [spec.resources]
    for part in parts:
        limits = base_units(part.limits if part else None)
        requests = base_units(part.requests if part else None)
        for name in ("cpu", "memory"):
            limit = limits.get(name, 0)
            if not limit or requests.get(name, limit) != limit:
                return False
    return bool(parts)


def _container_requests(container: wire.Container) -> dict[str, int]:
    resources = container.resources
    if resources is None:
        return {}
    # The API server fills in requests from limits; manifests that never met one get the same here.
    amounts = base_units({**(resources.limits or {}), **(resources.requests or {})})
    for name, amount in amounts.items():
        if amount < 0:
            raise ValueError(
                f"container {container.name!r} requests a negative amount of {name}: "
                "write 0 or more"
            )
    return amounts


def _affinity(affinity: wire.Affinity | None) -> NodeAffinity | None:
    node = affinity.node_affinity if affinity else None
    if node is None or (node.required is None and not node.preferred):
        return None
    required = node.required
    return NodeAffinity(
        required=None
        if required is None
        else tuple(_term(t) for t in required.node_selector_terms or ()),
        preferred=tuple(Preference(p.weight, _term(p.preference)) for p in node.preferred or ()),
    )


def _spread(constraint: wire.SpreadConstraintWire) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        hard=constraint.when_unsatisfiable == "DoNotSchedule",
        selector=label_selector(constraint.label_selector),
        min_domains=constraint.min_domains,
        honor_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honor_taints=constraint.node_taints_policy == "Honor",
        match_label_keys=tuple(constraint.match_label_keys or ()),
    )


def _pod_affinity(affinity: wire.Affinity | None) -> PodAffinity | None:
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None
    near = affinity.pod_affinity or wire.PodAffinityWire()
    apart = affinity.pod_anti_affinity or wire.PodAffinityWire()
    return PodAffinity(
        required=tuple(_pod_term(t) for t in near.required or ()),
        preferred=tuple(_pod_term(t.pod_affinity_term, t.weight) for t in near.preferred or ()),
        anti_required=tuple(_pod_term(t) for t in apart.required or ()),
        anti_preferred=tuple(
            _pod_term(t.pod_affinity_term, t.weight) for t in apart.preferred or ()
        ),
    )


def _pod_term(term: wire.PodAffinityTermWire, weight: int = 0) -> PodTerm:
    return PodTerm(
        topology_key=term.topology_key,
        selector=label_selector(term.label_selector),
        namespaces=tuple(term.namespaces or ()),
        namespace_selector=label_selector(term.namespace_selector),
        weight=weight,
        match_label_keys=tuple(term.match_label_keys or ()),
        mismatch_label_keys=tuple(term.mismatch_label_keys or ()),
    )


def label_selector(selector: wire.LabelSelectorWire | None) -> LabelSelector | None:
    """Return the selector as requirements; None, which matches nothing, stays None."""
    if selector is None:
        return None
    equal = (Requirement(k, "In", (v,)) for k, v in sorted((selector.match_labels or {}).items()))
    return LabelSelector((*equal, *(_requirement(r) for r in selector.match_expressions or ())))


def project_budget(budget: wire.BudgetWire) -> DisruptionBudget:
    """Return the budget as preemption sees it."""
    status = budget.status or wire.BudgetStatusWire()
    return DisruptionBudget(
        namespace=budget.metadata.namespace,
        name=budget.metadata.name,
        selector=label_selector(budget.spec.selector if budget.spec else None),
        allowed=status.disruptions_allowed,
        disrupted=frozenset(status.disrupted_pods or ()),
    )


def project_namespace(namespace: wire.NamespaceWire) -> Labels:
    """Return the namespace's labels, all that selectors see of it."""
    return tuple(sorted((namespace.metadata.labels or {}).items()))


def project_quota(quota: wire.ElasticQuotaWire) -> Quota:
    """Return the quota; what cannot be read of it becomes its `problem`."""
    spec = quota.spec or wire.ElasticQuotaSpecWire()
    try:
        return Quota(quota.metadata.name, base_units(spec.min), base_units(spec.max))
    except quantity.QuantityError as error:
        return Quota(quota.metadata.name, problem=f"spec: {error}")


def _term(term: wire.SelectorTerm) -> Term:
    return Term(
        labels=tuple(_requirement(r) for r in term.match_expressions or ()),
        fields=tuple(_requirement(r) for r in term.match_fields or ()),
    )


def _requirement(requirement: wire.SelectorRequirement) -> Requirement:
    return Requirement(requirement.key, requirement.operator, tuple(requirement.values or ()))


def _assignment(text: str) -> PodGpuAssignment:
    document = _assignment_decoder.decode(text)
    check_version(document.v)
    return tuple(
        (
            container,
            tuple(
                GpuPart(sys.intern(g.uuid), g.index, g.memory_mib, g.compute, g.whole)
                for g in parts
            ),
        )
        for container, parts in document.containers.items()
    )


def project_node(node: wire.NodeWire) -> Node:
    """Return the node as scheduling sees it; what cannot be read of it becomes its `problem`."""
    meta = node.metadata
    spec = node.spec or wire.NodeSpecWire()
    problem = ""
    allocatable: dict[str, int] = {}
    try:
        allocatable = base_units(node.status.allocatable if node.status else None)
    except quantity.QuantityError as error:
        problem = f"status.allocatable: {error}"
    gpus: tuple[Gpu, ...] = ()
    if text := (meta.annotations or {}).get(names.GPU_STATIC):
        try:
            gpus = _gpus(text)
        except UNREADABLE as error:
            problem = f"annotation {names.GPU_STATIC} cannot be read: {error}"
    annotations = meta.annotations or {}
    loads, ignored = read_loads(annotations, gpus) if annotations else ((), "")
    return Node(
        name=meta.name,
        allocatable=allocatable,
        labels=meta.labels or {},
        taints=tuple(Taint(t.key, t.effect, t.value or "") for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        gpus=gpus,
        problem=problem,
        images=node_images(node.status),
        loads=loads,
        ignored_loads=ignored,
        agent_lease=agent_lease(annotations, meta.name) if loads else "",
    )


def _gpus(text: str) -> tuple[Gpu, ...]:
    document = _gpu_static_decoder.decode(text)
    check_version(document.v)
    gpus = tuple(
        Gpu(g.uuid, g.index, sys.intern(g.model), g.memory_mib, g.numa, _links(g.links))
        for g in sorted(document.gpus, key=lambda g: g.index)
    )
    if len({g.uuid for g in gpus}) != len(gpus) or len({g.index for g in gpus}) != len(gpus):
        raise ValueError("a uuid or an index occurs twice")
    return gpus


def _links(links: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
    """Return the kinds of links by the other GPU's index, in order."""
    return tuple(sorted((int(index), sys.intern(kind)) for index, kind in links.items()))
