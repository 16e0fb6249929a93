"""A gang is placed whole or not at all."""

from collections.abc import Iterator, Sequence

from alnair.checker.objects.groups import CheckedGang
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.state import CheckedCluster
from alnair.checker.violation import Violation


def gang_whole(group: CheckedGang, members: Sequence[CheckedPod]) -> Iterator[Violation]:
    """Of a gang, no pod is bound or at least as many as it needs (pods; ended ones count).

    A gang whose bound pods are all on their way out holds nothing for long, and counts as none.
    """
    bound = [pod for pod in members if pod.node]
    if not any(pod.ours for pod in members) or all(pod.deleting for pod in bound):
        return
    if 0 < len(bound) < group.least:
        yield Violation("gang-whole", group.title, used=len(bound), limit=group.least)


def gang_topology(cluster: CheckedCluster, chosen: Sequence[CheckedPod]) -> Iterator[Violation]:
    """The bound pods of a gang with a required topology are in one domain.

    Ended pods and those on their way out are no part of it any more, and a node without the label
    is in no domain. Left out are gangs of which others have bound a pod, for ours may have followed
    it, and PodGroups of one name in several API groups that disagree.
    """
    required: dict[tuple[str, str], set[str]] = {}
    for group in cluster.groups:
        required.setdefault(group.key, set()).add(group.topology)
    members: dict[tuple[str, str], list[CheckedPod]] = {}
    for pod in chosen:
        if pod.holds and pod.group and not pod.deleting:
            members.setdefault((pod.namespace, pod.group), []).append(pod)
    for key, pods in sorted(members.items()):
        keys = required.get(key, set())
        level = next(iter(keys)) if len(keys) == 1 else ""
        if not level or not all(pod.ours for pod in pods):
            continue
        nodes = [cluster.nodes[pod.node] for pod in pods if pod.node in cluster.nodes]
        domains = sorted({node.labels[level] for node in nodes if level in node.labels})
        if len(domains) > 1:
            yield Violation(
                "gang-topology",
                "podgroup {}/{}".format(*key),
                used=f"{level} in {', '.join(domains)}",
                limit="1 domain",
            )
