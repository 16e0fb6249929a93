"""What a scheduler holds for others, for those who give out what is free: small, whatever waits."""

from collections import Counter
from typing import Final

from alnair.model.api_types import HeldNodes, HeldRoom, Holdings
from alnair.scheduler.engine.view import View

#: Pods that are named, and nodes: everybody who watches the Lease gets it at each renewal.
MOST_PODS: Final = 64
MOST_NODES: Final = 512


def holdings(view: View) -> Holdings:
    """Return what is held: room for pods, nodes for what has waited longest, and shares of quotas.

    Args:
        view: of an engine between two steps.
    """
    held = sorted(
        view.nominations(),
        key=lambda n: (not n.reclaimed, -n.record.pod.priority, n.record.pod.uid),
    )
    return Holdings(
        v=1,
        room=tuple(
            HeldRoom(
                n.record.pod.uid,
                f"{n.record.pod.namespace}/{n.record.pod.name}",
                n.node,
                n.reclaimed,
            )
            for n in held[:MOST_PODS]
        ),
        nodes=_reserved(view),
        quota=_to_take_back(view),
        left_out=max(0, len(held) - MOST_PODS),
    )


def _reserved(view: View) -> HeldNodes | None:
    kept = view.reservation
    if kept is None or not kept.holder.pods:
        return None
    found = (view.cluster.columns.nodes[row] for row in kept.rows[:MOST_NODES])
    return HeldNodes(
        kept.holder.key, tuple(sorted(node.name for node in found if node)), round(kept.until)
    )


def _to_take_back(view: View) -> dict[str, dict[str, int]]:
    """Return by namespace what pods that wait ask for of its quota's `min` that it does not use."""
    quotas = view.quotas
    if not quotas.namespaces:
        return {}
    asked: dict[str, Counter[str]] = {}
    for unit in view.units():
        for record in unit.pods.values():
            if quotas.of(record.pod.namespace) is not None:
                wanted = asked.setdefault(record.pod.namespace, Counter())
                wanted.update(dict(record.pod.spec.requests))
    found: dict[str, dict[str, int]] = {}
    for namespace, wanted in sorted(asked.items()):
        quota, used = quotas.of(namespace), quotas.used(namespace)
        assert quota is not None
        back = {
            resource: min(least - used.get(resource, 0), wanted[resource])
            for resource, least in sorted(quota.min.items())
        }
        if back := {resource: amount for resource, amount in back.items() if amount > 0}:
            found[namespace] = back
    return found
