"""A pod is not near pods that it, or they, must not be near."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from alnair.checker.objects.affinity_terms import Term
from alnair.checker.objects.matching import about
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.state import CheckedCluster
from alnair.checker.violation import Violation


def pod_anti_affinity(cluster: CheckedCluster, chosen: Sequence[CheckedPod]) -> Iterator[Violation]:
    """No pod of ours is in a domain with another of ours that its required anti-affinity means.

    That holds in whatever order they came. Pods of others may have come later, without regard to
    ours, and pods on their way out may be there no more; neither counts.
    """
    ours = [pod for pod in cluster.pods if pod.ours and pod.holds and not pod.deleting]
    meant: dict[str, dict[str, list[CheckedPod]]] = {}
    for pod in chosen:
        if not (pod.ours and pod.holds) or pod.deleting:
            continue
        for term in pod.apart:
            domain = _domain(cluster, pod, term)
            if domain is None:
                continue
            if term.identity not in meant:
                meant[term.identity] = _by_domain(cluster, ours, term)
            others = meant[term.identity][domain]
            other = next((other for other in others if other.uid != pod.uid), None)
            if other is not None:
                yield apart(pod, term, domain, other)


def apart(pod: CheckedPod, term: Term, domain: str, other: CheckedPod) -> Violation:
    """Return that a pod is in a domain with another one, against its anti-affinity."""
    return Violation(
        "pod-anti-affinity",
        pod.title,
        pod.node,
        used=f"{other.title} in {term.key}={domain}",
        limit="no such pod there",
    )


def _by_domain(
    cluster: CheckedCluster, pods: Sequence[CheckedPod], term: Term
) -> dict[str, list[CheckedPod]]:
    """Return up to two pods per domain that the term means: one of them is not its holder."""
    found: defaultdict[str, list[CheckedPod]] = defaultdict(list)
    for pod in pods:
        domain = _domain(cluster, pod, term)
        if domain is not None and len(found[domain]) < 2 and about(term, pod):
            found[domain].append(pod)
    return found


def _domain(cluster: CheckedCluster, pod: CheckedPod, term: Term) -> str | None:
    node = cluster.nodes.get(pod.node)
    return node.labels.get(term.key) if node else None
