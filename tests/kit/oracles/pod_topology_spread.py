"""Topology spread once more in plain Python, node by node: see `evaluation` for why.

It knows nothing of selectors but In with one value, Exists and "no requirement", which suffice.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from alnair.model.nodes import Node
from alnair.model.workload import LabelSelector, Pod, SpreadConstraint
from kit.oracles.evaluation import matches, tolerates

HOSTNAME = "kubernetes.io/hostname"
LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEW = "node(s) didn't match pod topology spread constraints"


class SpreadOracle:
    """A pod, the nodes, and the pods on them by node name."""

    def __init__(self, pod: Pod, nodes: Iterable[Node], on: Mapping[str, Sequence[Pod]]) -> None:
        self.pod = pod
        self.nodes = list(nodes)
        self.on = on

    def refusals(self) -> dict[str, str]:
        """Return for each node why it is refused, empty if it is not."""
        hard = [c for c in self.pod.spec.spread if c.hard]
        return {node.name: self._refusal(hard, node) for node in self.nodes}

    def scores(self, feasible: Sequence[Node]) -> dict[str, int]:
        """Return the score of each feasible node; empty if there is nothing to score."""
        soft = [c for c in self.pod.spec.spread if not c.hard]
        if not soft:
            return {}
        judged = [n for n in feasible if _has_keys(n, soft)]
        raw = {n.name: self._raw(soft, n, judged) for n in judged}
        most, least = max(raw.values(), default=0), min(raw.values(), default=0)
        scores = dict.fromkeys((n.name for n in feasible), 0)
        for name, value in raw.items():
            scores[name] = 100 * (most + least - value) // most if most else 100
        return scores

    def _refusal(self, hard: Sequence[SpreadConstraint], node: Node) -> str:
        for constraint in hard:
            key = constraint.topology_key
            if key not in node.labels:
                return LABEL
            counts = self._domains(constraint, hard)
            least = min(counts.values(), default=0)
            if len(counts) < (constraint.min_domains or 1):
                least = 0
            mine = counts.get(node.labels[key], 0) + self._is_selected(constraint, self.pod)
            if mine - least > constraint.max_skew:
                return SKEW
        return ""

    def _raw(self, soft: Sequence[SpreadConstraint], node: Node, judged: Sequence[Node]) -> int:
        total = 0.0
        for constraint in soft:
            key = constraint.topology_key
            if key == HOSTNAME:
                number, size = self._count(constraint, node), len(judged)
            else:
                number = self._domains(constraint, soft).get(node.labels[key], 0)
                size = len({n.labels[key] for n in judged})
            total += number * math.log(size + 2) + constraint.max_skew - 1
        return math.floor(total + 0.5)

    def _domains(
        self, constraint: SpreadConstraint, all_of_them: Sequence[SpreadConstraint]
    ) -> dict[str, int]:
        """Return the matching pods of each domain in which a node counts."""
        counts: dict[str, int] = defaultdict(int)
        for node in self.nodes:
            if _has_keys(node, all_of_them) and self._counts_node(constraint, node):
                counts[node.labels[constraint.topology_key]] += self._count(constraint, node)
        return counts

    def _counts_node(self, constraint: SpreadConstraint, node: Node) -> bool:
        spec = self.pod.spec
        if constraint.honor_affinity:
            if any(node.labels.get(k) != v for k, v in spec.node_selector):
                return False
            required = spec.affinity.required if spec.affinity else None
            if required is not None and not any(matches(t, node) for t in required):
                return False
        hard = [t for t in node.taints if t.effect != "PreferNoSchedule"]
        return not constraint.honor_taints or all(tolerates(spec.tolerations, t) for t in hard)

    def _count(self, constraint: SpreadConstraint, node: Node) -> int:
        if constraint.selector == LabelSelector() and not self._same(constraint):
            return 0  # a selector that asks for nothing counts nobody
        return sum(
            pod.namespace == self.pod.namespace
            and not pod.deleting
            and self._is_selected(constraint, pod)
            for pod in self.on.get(node.name, ())
        )

    def _same(self, constraint: SpreadConstraint) -> dict[str, str]:
        mine = dict(self.pod.labels)
        return {k: mine[k] for k in constraint.match_label_keys if k in mine}

    def _is_selected(self, constraint: SpreadConstraint, pod: Pod) -> bool:
        labels = dict(pod.labels)
        if constraint.selector is None:
            return False
        if any(labels.get(k) != v for k, v in self._same(constraint).items()):
            return False
        return all(
            r.key in labels and (r.operator == "Exists" or labels[r.key] == r.values[0])
            for r in constraint.selector.requirements
        )


def _has_keys(node: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(c.topology_key in node.labels for c in constraints)
