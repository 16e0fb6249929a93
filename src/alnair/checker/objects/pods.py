"""A pod as the checker sees it."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from alnair.checker.objects import api_names
from alnair.checker.objects.affinity_terms import Term, required
from alnair.checker.objects.amounts import UnreadableError
from alnair.checker.objects.assignments import Part, parts_of
from alnair.checker.objects.requests import CheckedContainer, containers, total


class CheckedPod(msgspec.Struct, frozen=True):
    """What a pod asks for, and where it is.

    Attributes:
        node: The node that it is bound to; empty before.
        ours: One of our schedulers is responsible for it.
        holds: It is bound and has not ended, so it uses what it asks for.
        mirror: The image of a static pod.
        needs: What its node must have for it, `pods` included.
        containers: In order of their start.
        parts: Its assignment, None without one.
        assignment_problem: Why the assignment cannot be read.
        problem: Why the specification cannot be read.
        near: Terms of its required affinity to other pods.
        apart: Terms of its required anti-affinity.
        ports: Its host ports: address, protocol, number.
        claims: Names of the claims that it uses.
        device_claims: Names of its claims for devices, by dynamic resource allocation.
        preempted: Our scheduler has made it leave for others.
        measured: Its agent says what its GPUs do, so it may be known to be idle.
    """

    namespace: str
    name: str
    uid: str
    node: str
    ours: bool
    holds: bool
    deleting: bool
    mirror: bool
    group: str
    annotations: dict[str, str]
    node_selector: dict[str, str]
    required: list[dict[str, Any]] | None
    tolerations: tuple[dict[str, Any], ...]
    needs: dict[str, Fraction]
    containers: tuple[CheckedContainer, ...]
    parts: tuple[Part, ...] | None = None
    assignment_problem: str = ""
    problem: str = ""
    labels: dict[str, str] = {}
    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    ports: tuple[tuple[str, str, int], ...] = ()
    claims: tuple[str, ...] = ()
    device_claims: tuple[str, ...] = ()
    priority: int = 0
    preempted: bool = False
    measured: bool = False

    @property
    def title(self) -> str:
        """How it is named in a violation."""
        return f"pod {self.namespace}/{self.name}"

    @property
    def wants_gpus(self) -> bool:
        """Some container asks for a GPU or a slice of one."""
        return any(
            c.amounts.get(resource)
            for c in self.containers
            for resource in (api_names.WHOLE, api_names.MEMORY, api_names.COMPUTE)
        )

    @property
    def soft(self) -> bool:
        """Its compute shares are no hard limits: it may use what others leave."""
        return self.annotations.get(api_names.POLICY) == "soft"

    @property
    def models(self) -> tuple[str, ...]:
        """GPU models that will do, as its annotation lists them; empty = any."""
        return self._listed(api_names.MODELS)

    @property
    def models_not(self) -> tuple[str, ...]:
        """GPU models that will not do, as its annotation lists them."""
        return self._listed(api_names.MODELS_NOT)

    def will_do(self, model: str) -> bool:
        """Return whether it takes a GPU of this model."""
        return model not in self.models_not and (not self.models or model in self.models)

    def _listed(self, annotation: str) -> tuple[str, ...]:
        text = self.annotations.get(annotation, "")
        return tuple(model.strip() for model in text.split(",") if model.strip())


def pod_of(manifest: Mapping[str, Any], ours: frozenset[str] = api_names.SCHEDULERS) -> CheckedPod:
    """Return a pod; what cannot be read becomes its problem."""
    metadata = manifest.get("metadata") or {}
    spec = manifest.get("spec") or {}
    labels = metadata.get("labels") or {}
    annotations = metadata.get("annotations") or {}
    problem = assignment_problem = ""
    order: tuple[CheckedContainer, ...] = ()
    needs: dict[str, Fraction] = {}
    parts = None
    try:
        order = containers(spec)
        needs = total(spec, order)
    except UnreadableError as error:
        problem = str(error)
    needs["pods"] = Fraction(1)
    if api_names.ASSIGNMENT in annotations:
        try:
            parts = parts_of(annotations[api_names.ASSIGNMENT])
        except UnreadableError as error:
            assignment_problem = str(error)
    node = spec.get("nodeName") or ""
    status = manifest.get("status") or {}
    ended = status.get("phase") in {"Succeeded", "Failed"}
    namespace = metadata.get("namespace", "")
    return CheckedPod(
        namespace=namespace,
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        node=node,
        ours=(spec.get("schedulerName") or "default-scheduler") in ours,
        holds=bool(node) and not ended,
        deleting=bool(metadata.get("deletionTimestamp")),
        mirror=api_names.MIRROR in annotations,
        group=next((labels[key] for key in api_names.GROUP_LABELS if labels.get(key)), ""),
        annotations={key: annotations[key] for key in api_names.ABOUT_GPUS if key in annotations},
        node_selector=dict(spec.get("nodeSelector") or {}),
        required=_node_affinity(spec),
        tolerations=tuple(spec.get("tolerations") or ()),
        needs=needs,
        containers=order,
        parts=parts,
        assignment_problem=assignment_problem,
        problem=problem,
        labels=dict(labels),
        near=required(spec, "podAffinity", namespace, labels),
        apart=required(spec, "podAntiAffinity", namespace, labels),
        ports=_ports(spec),
        claims=_claims(spec),
        device_claims=tuple(claim.get("name", "") for claim in spec.get("resourceClaims") or ()),
        priority=spec.get("priority") or 0,
        preempted=is_preempted(status),
        measured=api_names.UTILIZATION in annotations,
    )


def is_preempted(status: Mapping[str, Any]) -> bool:
    """Whether the pod's status says that our scheduler made it leave for others."""
    return any(
        condition.get("type") == "DisruptionTarget"
        and condition.get("status") == "True"
        and condition.get("reason") == api_names.PREEMPTED
        and str(condition.get("message", "")).startswith(api_names.PREEMPTOR)
        for condition in status.get("conditions") or ()
    )


def _ports(spec: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Return the host ports of all that runs at the same time, containers and sidecars."""
    stay = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    found = {
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in (*stay, *(spec.get("containers") or ()))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }
    return tuple(sorted(found))


def _claims(spec: Mapping[str, Any]) -> tuple[str, ...]:
    sources = (v.get("persistentVolumeClaim") or {} for v in spec.get("volumes") or ())
    return tuple(sorted({s["claimName"] for s in sources if s.get("claimName")}))


def _node_affinity(spec: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else list(required.get("nodeSelectorTerms") or ())
