"""Keeping workers away from nodes: as Kubernetes writes it, for whoever makes the pods."""

from collections.abc import Sequence
from typing import Any, Final

from alnair.model import names

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def away_from(nodes: Sequence[str], affinity: dict[str, Any] | None) -> dict[str, Any]:
    """Return an affinity by which pods go to none of these nodes.

    Args:
        nodes: Names.
        affinity: What else holds of the pods, as their user wrote it.
    """
    made = dict(affinity or {})
    made["nodeAffinity"] = {
        **made.get("nodeAffinity", {}),
        _REQUIRED: {"nodeSelectorTerms": _terms(nodes, affinity)},
    }
    return made


def noted(nodes: Sequence[str]) -> dict[str, Any]:
    """Return the annotations of what makes the pods, as a part of its metadata."""
    return {"annotations": {names.LEAVE_NODES: ",".join(nodes)}} if nodes else {}


def patch(nodes: Sequence[str], affinity: dict[str, Any] | None) -> dict[str, Any]:
    """Return the merge patch of a StatefulSet whose next pods shall keep away from these nodes.

    Pods that there are stay: the training would be restarted otherwise. Without nodes it is as its
    user wrote it.
    """
    terms = _terms(nodes, affinity)
    required = {"nodeSelectorTerms": terms} if terms else None
    return {
        "metadata": {"annotations": {names.LEAVE_NODES: ",".join(nodes) or None}},
        "spec": {
            "updateStrategy": {"type": "OnDelete", "rollingUpdate": None},
            "template": {"spec": {"affinity": {"nodeAffinity": {_REQUIRED: required}}}},
        },
    }


def _terms(nodes: Sequence[str], affinity: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the user's terms, one of which must hold, each with all that excludes the nodes."""
    required = (affinity or {}).get("nodeAffinity", {}).get(_REQUIRED) or {}
    terms: list[dict[str, Any]] = required.get("nodeSelectorTerms", [])
    # The API server takes one name each.
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    if not fields:
        return terms
    return [
        {**term, "matchFields": [*term.get("matchFields", ()), *fields]} for term in terms or [{}]
    ]
