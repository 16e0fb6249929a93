"""A pod is on a node that it accepts and that accepts it."""

from collections.abc import Iterator

from alnair.checker.objects import api_names
from alnair.checker.objects.matching import accepts, tolerates
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.violation import Violation

Found = Iterator[Violation]


def node_exists(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """The node that the pod is bound to is there."""
    if node is None:
        yield Violation("node-exists", pod.title, pod.node, used="no such node", limit="a node")


def node_selector(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """The node has all labels of the pod's nodeSelector."""
    if node is None:
        return
    for key, wanted in sorted(pod.node_selector.items()):
        found = node.labels.get(key)
        if found != wanted:
            yield Violation(
                "node-selector",
                pod.title,
                node.name,
                used=f"{key}={found}" if found is not None else f"no label {key}",
                limit=f"{key}={wanted}",
            )


def node_affinity(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """One term of the pod's required node affinity matches the node."""
    if node is None or pod.required is None or accepts(node, pod.required):
        return
    keys = {
        expression.get("key", "")
        for term in pod.required
        for expression in term.get("matchExpressions") or ()
    }
    labels = ", ".join(f"{key}={node.labels.get(key, '(absent)')}" for key in sorted(keys))
    yield Violation(
        "node-affinity",
        pod.title,
        node.name,
        used=labels or "a node of another name",
        limit="; ".join(_term(term) for term in pod.required) or "no term, which no node matches",
    )


def _term(term: dict[str, list[dict[str, object]]]) -> str:
    parts = [
        f"{r.get('key')} {r.get('operator')} {r.get('values') or ''}".strip()
        for field in ("matchExpressions", "matchFields")
        for r in term.get(field) or ()
    ]
    return " and ".join(parts) or "an empty term"


def node_taints(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """The pod tolerates the node's NoSchedule and NoExecute taints.

    Not looked at: the taints of the node's life cycle (not ready, cordoned, under pressure), which
    may be younger than the binding, and what the kubelet starts by itself.
    """
    if node is None or pod.mirror:
        return
    for taint in node.taints:
        if taint.get("effect") not in {"NoSchedule", "NoExecute"}:
            continue
        if taint.get("key", "").startswith(api_names.LIFECYCLE_TAINTS) or tolerates(pod, taint):
            continue
        yield Violation(
            "node-taints",
            pod.title,
            node.name,
            used=f"{taint.get('key')}={taint.get('value') or ''}:{taint.get('effect')}",
            limit="a toleration for it",
        )


def gpu_model(pod: CheckedPod, node: CheckedNode | None) -> Found:
    """The GPUs that the pod got are of models that it takes."""
    if node is None or not pod.ours or not pod.wants_gpus:
        return
    parts = pod.parts or ()
    known = [node.gpus[part.uuid] for part in parts if part.uuid in node.gpus]
    # Without an assignment it could still be on any of the node's GPUs.
    wrong = [gpu for gpu in known if not pod.will_do(gpu.model)]
    if not known and not any(pod.will_do(gpu.model) for gpu in node.gpus.values()):
        wrong = list(node.gpus.values())[:1]
    for gpu in wrong:
        wanted = ", ".join([*pod.models, *(f"not {model}" for model in pod.models_not)])
        yield Violation("gpu-model", pod.title, node.name, gpu.uuid, gpu.model, wanted)
