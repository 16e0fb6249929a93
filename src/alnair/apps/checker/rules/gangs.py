"""A gang is placed whole or not at all."""

from collections.abc import Iterator, Sequence

from alnair.apps.checker.groups import Group
from alnair.apps.checker.pods import Pod
from alnair.apps.checker.violation import Violation


def gang_whole(group: Group, members: Sequence[Pod]) -> Iterator[Violation]:
    """Of a gang, no pod is bound or at least as many as it needs (pods; ended ones count).

    A gang whose bound pods are all on their way out holds nothing for long, and counts as none.
    """
    bound = [pod for pod in members if pod.node]
    if not any(pod.ours for pod in members) or all(pod.deleting for pod in bound):
        return
    if 0 < len(bound) < group.least:
        yield Violation("gang-whole", group.title, used=len(bound), limit=group.least)
