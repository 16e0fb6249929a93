"""Whose fault an over-commit is when several schedulers share a node.

The API server checks no resources at binding, so two schedulers that bind at the same moment can
cross. The rule: an over-commit among our own pods is ours at once. One that involves a foreign pod
is ours if we sent our binding although the foreign one had been visible for half a second, or if it
lasts longer than five seconds in which the API server answered, for then we did not clear it up.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from alnair.checker import registry
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.violation import Violation

#: Seconds for which a foreign binding must have been visible for us to be blamed.
VISIBLE: Final = 0.5
#: Seconds after which an over-commit is ours, however it came about.
LASTING: Final = 5.0


class Holder(msgspec.Struct, frozen=True):
    """A pod on a node, and when its binding was first seen (seconds, monotonic).

    Of one that was there when the watch began, nobody knows for how long: it may just have come.
    """

    pod: CheckedPod
    seen: float


def ours_alone(node: CheckedNode, holders: Sequence[Holder]) -> list[Violation]:
    """Return the over-commits that our own pods make without any other."""
    return registry.of_node(node, [h.pod for h in holders if h.pod.ours])


def knowingly(node: CheckedNode, holders: Sequence[Holder], sent: float) -> list[Violation]:
    """Return what was over-committed by a binding of ours with all that was visible before it.

    Args:
        node: The node.
        holders: What is on it, the new pod included.
        sent: The earliest moment at which our binding can have been sent.
    """
    known = [h.pod for h in holders if h.pod.ours or h.seen <= sent - VISIBLE]
    return registry.of_node(node, known)


def not_cleared(node: CheckedNode, holders: Sequence[Holder]) -> list[Violation]:
    """Return what is over-committed still, our pods that are on their way out apart."""
    return registry.of_node(node, [h.pod for h in holders if not (h.pod.ours and h.pod.deleting)])
