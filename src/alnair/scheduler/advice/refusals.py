"""Which nodes each plugin refuses and why, and which nodes are closest to fitting."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.advice.diagnosis import Candidate, Predicate
from alnair.scheduler.framework.extension_points import Profile, Reason
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask

_CLOSEST: Final = 5


class Judged(msgspec.Struct, frozen=True):
    """One plugin's answer for all rows: which it refuses, and its reasons with their rows."""

    plugin: str
    refused: Mask
    reasons: list[tuple[Reason, Mask]]


def judge(spec: PodSpec, profile: Profile, cluster: Cluster) -> list[Judged]:
    """Return the answer of every filter, in their order, each asked about every node."""
    alive = cluster.columns.alive[: cluster.columns.n]
    everywhere = slice(0, cluster.columns.n)
    found = []
    for plugin in profile.filters:
        compiled = plugin.filter(spec, cluster)
        if compiled is not None:
            refused = alive & ~compiled(everywhere)
            reasons = [(r, m & refused) for r, m in compiled.reasons(everywhere)]
            found.append(Judged(plugin.name, refused, reasons))
    return found


def accepting(spec: PodSpec, profile: Profile, cluster: Cluster) -> Mask:
    """Return which rows pass all filters; cheaper than a decision, since nothing is scored."""
    everywhere = slice(0, cluster.columns.n)
    left = cluster.columns.alive[everywhere].copy()
    for plugin in profile.filters:
        if not left.any():
            break
        if (compiled := plugin.filter(spec, cluster)) is not None:
            left &= compiled(everywhere)
    return left


def predicates(judged: Sequence[Judged], cluster: Cluster) -> list[Predicate]:
    """Return the counts per reason, in the order of the plugins."""
    left = cluster.columns.alive[: cluster.columns.n].copy()
    times = _times(judged, cluster)
    found = []
    for each in judged:
        by_text: dict[str, list[tuple[Reason, Mask]]] = {}
        for reason, mask in each.reasons:
            if mask.any():
                by_text.setdefault(reason.text, []).append((reason, mask))
        for text, same in by_text.items():
            mask = np.logical_or.reduce([m for _, m in same])
            found.append(
                Predicate(
                    plugin=each.plugin,
                    reason=text,
                    nodes=int(mask.sum()),
                    first=int((mask & left).sum()),
                    only=int((mask & (times == 1)).sum()),
                    resolvable=not all(r.unresolvable for r, _ in same),
                )
            )
        left &= ~each.refused
    return found


def candidates(judged: Sequence[Judged], spec: PodSpec, cluster: Cluster) -> list[Candidate]:
    """Return the nodes that the fewest plugins refuse; of these, those that lack the least."""
    columns = cluster.columns
    times, lack = _times(judged, cluster), relative_lack(spec, cluster)
    alive = np.flatnonzero(columns.alive[: columns.n])
    order = sorted(
        alive[np.lexsort((lack[alive], times[alive]))][: 4 * _CLOSEST],
        key=lambda row: (times[row], lack[row], _name(cluster, row)),
    )
    return [
        Candidate(
            _name(cluster, row),
            tuple(r.text for each in judged for r, mask in each.reasons if mask[row]),
            _missing(spec, cluster, row),
        )
        for row in order[:_CLOSEST]
    ]


def _times(judged: Sequence[Judged], cluster: Cluster) -> Column:
    total = np.zeros(cluster.columns.n)
    for each in judged:
        total += each.refused
    return total


def relative_lack(spec: PodSpec, cluster: Cluster) -> Column:
    """Return, per row, the sum over resources of the missing part of what is asked for."""
    columns = cluster.columns
    total = np.zeros(columns.n)
    for name, amount in spec.requests:
        free = columns.free[columns.resource(name), : columns.n]
        total += np.maximum(0.0, amount - free) / amount
    return total


def _missing(spec: PodSpec, cluster: Cluster, row: int) -> dict[str, int]:
    free = cluster.columns.free[:, row]
    return {
        name: int(amount - free[column])
        for name, amount in spec.requests
        if amount > free[column := cluster.columns.resource(name)]
    }


def _name(cluster: Cluster, row: int) -> str:
    node = cluster.columns.nodes[row]
    return node.name if node else ""
