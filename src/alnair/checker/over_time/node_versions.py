"""Judging what two streams tell: a change of a node may arrive after the binding it allowed.

Pods and nodes come over watches that are not ordered among each other, and the scheduler decided on
the node as it knew it. So a suspicion is confirmed only if every version of the node around the
moment in question condemns it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.violation import Violation

#: Versions of a node count that held at most so long (seconds) before the moment in question,
BEFORE: Final = 0.5
#: and those that arrive within this time (seconds) after it.
AFTER: Final = 2.0

Judgement = Callable[[CheckedNode | None], list[Violation]]


class NodeVersions:
    """The versions of a node, None while there was none, as far back as they can matter."""

    def __init__(self) -> None:
        self._versions: deque[tuple[float, CheckedNode | None]] = deque()

    def add(self, now: float, node: CheckedNode | None) -> None:
        """Note the version that holds from now on."""
        self._versions.append((now, node))
        while len(self._versions) > 1 and self._versions[1][0] < now - BEFORE - AFTER - 1:
            self._versions.popleft()

    @property
    def last(self) -> CheckedNode | None:
        """The node as it is now."""
        return self._versions[-1][1] if self._versions else None

    def around(self, moment: float) -> list[CheckedNode | None]:
        """Return the versions that held around a moment; [None] if the node never was there."""
        found = []
        previous: CheckedNode | None = None
        for since, node in self._versions:
            if since > moment - BEFORE:
                found.append(previous)
            previous = node
        found.append(previous)
        # The moments before a node was made, or after it was deleted, say nothing about it.
        return [node for node in found if node is not None] or [None]


class PendingJudgement(msgspec.Struct, frozen=True):
    """Something that looked wrong at a moment, to be judged when all that matters has arrived."""

    moment: float
    node: str
    judge: Judgement

    def confirmed(self, history: NodeVersions) -> list[Violation]:
        """Return what every version of the node around the moment condemns."""
        verdicts = [self.judge(version) for version in history.around(self.moment)]
        common = set.intersection(*({v.key for v in verdict} for verdict in verdicts))
        return [violation for violation in verdicts[-1] if violation.key in common]
