"""Inter-pod affinity once more in plain Python, pod by pod and node by node, as documented.

Independent of `alnair.scheduler`; slow and simple on purpose.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from alnair.model.nodes import Node
from alnair.model.workload import LabelSelector, Pod, PodAffinity, PodTerm

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"


class Neighbours(msgspec.Struct):
    """Pods that are on nodes, all nodes, and the labels of the namespaces that exist."""

    nodes: Mapping[str, Node]
    pods: Sequence[Pod]
    namespaces: Mapping[str, Mapping[str, str]]

    def on(self, pod: Pod) -> Node | None:
        return self.nodes.get(pod.node)

    # --- filter -----------------------------------------------------------------------------------

    def refusal(self, pod: Pod, node: Node) -> str:
        """Return why the node will not do; empty if it will."""
        mine = pod.spec.pod_affinity or PodAffinity()
        if mine.required and not self._near(pod, mine.required, node):
            return NOT_NEAR
        for other in self.pods:
            where = self.on(other)
            for term in mine.anti_required:
                if self.is_about(term, pod, other, held=False) and same(term, node, where):
                    return NOT_APART
        for other in self.pods:
            where = self.on(other)
            theirs = other.spec.pod_affinity or PodAffinity()
            for term in theirs.anti_required:
                if self.is_about(term, other, pod, held=True) and same(term, node, where):
                    return UNWELCOME
        return ""

    def _near(self, pod: Pod, terms: Iterable[PodTerm], node: Node) -> bool:
        if any(term.topology_key not in node.labels for term in terms):
            return False
        wanted = [p for p in self.pods if self._all(terms, pod, p) and self.on(p)]
        if all(any(same(t, node, self.on(p)) for p in wanted) for t in terms):
            return True
        somewhere = any(t.topology_key in self.nodes[p.node].labels for p in wanted for t in terms)
        return not somewhere and self._all(terms, pod, pod)

    def _all(self, terms: Iterable[PodTerm], holder: Pod, other: Pod) -> bool:
        return all(self.is_about(term, holder, other, held=False) for term in terms)

    def is_about(self, term: PodTerm, holder: Pod, other: Pod, *, held: bool) -> bool:
        """Return whether the holder's term selects the other pod; `held` = its holder has a node.

        A namespace that is not known has no labels for a held term, and is not selected by others.
        """
        selector = term.namespace_selector
        if selector is None:
            here = other.namespace in (term.namespaces or (holder.namespace,))
        elif not selector.requirements or other.namespace in term.namespaces:
            here = True
        else:
            known = other.namespace in self.namespaces
            here = (known or held) and selects(selector, self.namespaces.get(other.namespace, {}))
        return here and selects(term.selector, dict(other.labels))

    # --- score ------------------------------------------------------------------------------------

    def raw(self, pod: Pod, node: Node, hard_weight: int) -> int:
        """Return the sum of weights that speak for the node, less those that speak against it."""
        mine = pod.spec.pod_affinity or PodAffinity()
        total = 0
        for other in self.pods:
            theirs = other.spec.pod_affinity or PodAffinity()
            where = self.on(other)
            for sign, own, held in (
                (1, mine.preferred, theirs.preferred),
                (-1, mine.anti_preferred, theirs.anti_preferred),
            ):
                for term in own:
                    if self.is_about(term, pod, other, held=False) and same(term, node, where):
                        total += sign * term.weight
                for term in held:
                    if self.is_about(term, other, pod, held=True) and same(term, node, where):
                        total += sign * term.weight
            for term in theirs.required:
                if self.is_about(term, other, pod, held=True) and same(term, node, where):
                    total += hard_weight
        return total

    def scores(self, pod: Pod, feasible: Sequence[Node], hard_weight: int) -> dict[str, int]:
        """Return the score of each feasible node, 0 to 100."""
        raw = {node.name: self.raw(pod, node, hard_weight) for node in feasible}
        least, most = min(raw.values()), max(raw.values())
        if least == most:
            return dict.fromkeys(raw, 0)
        return {name: int(100.0 * ((s - least) / (most - least))) for name, s in raw.items()}


def same(term: PodTerm, node: Node, other: Node | None) -> bool:
    """Return whether both nodes are in one domain of the term."""
    key = term.topology_key
    return other is not None and key in node.labels and node.labels[key] == other.labels.get(key)


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector takes these labels; None takes nothing."""
    if selector is None:
        return False
    for asked in selector.requirements:
        value = labels.get(asked.key)
        holds = {
            "In": value in asked.values,
            "NotIn": value not in asked.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[asked.operator]
        if not holds:
            return False
    return True
