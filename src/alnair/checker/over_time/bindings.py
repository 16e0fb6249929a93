"""What a binding is judged by when the order of events is seen: who was where, and since when.

A scheduler decides before it binds, on what it could see then. So of what others did, and of what
was changed, only that counts against a binding which was there some time before it.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from alnair.checker.objects.pods import CheckedPod
from alnair.checker.over_time.node_versions import NodeVersions

#: What a decision must know was there for so long (seconds) before the binding: a gang is bound
#: pod by pod, some time after it was decided on.
KNOWN: Final = 5.0
#: Pods and states of them that are over are remembered for so long (seconds).
_REMEMBERED: Final = 70.0


class Seen(msgspec.Struct, frozen=True):
    """A pod, and since when what matters of it is as it is (seconds, monotonic).

    Attributes:
        bound: Since when it has its node; -inf if it was there at the start.
        labelled: Since when it has its labels; -inf if they never changed.
        scheduled: It was seen pending and then bound, and is ours.
    """

    pod: CheckedPod
    bound: float
    labelled: float
    scheduled: bool

    def known(self, moment: float) -> bool:
        """Whether a scheduler of ours that bound a pod at this moment knew it so."""
        before = moment - KNOWN
        return self.labelled <= before and (self.scheduled or self.bound <= before)


class Bindings:
    """All pods, with the near past.

    Args:
        histories: The versions of the nodes by name.
    """

    def __init__(self, histories: Mapping[str, NodeVersions]) -> None:
        self.now = -math.inf
        self.seen: dict[str, Seen] = {}
        self._histories = histories
        self._past: deque[tuple[float, Seen]] = deque()

    def learn(self, uid: str, pod: CheckedPod | None, now: float, *, start: bool) -> Seen | None:
        """Take a pod's new state, None if it is gone; return it if our scheduler bound it just now.

        Args:
            uid: Of the pod.
            pod: Its state.
            now: When it was seen.
            start: It belongs to the first list.
        """
        old = self.seen.pop(uid, None)
        if old is not None:
            self._past.append((now, old))
        while self._past and self._past[0][0] < now - _REMEMBERED:
            self._past.popleft()
        if pod is None:
            return None
        since = -math.inf if start else now
        moved = old is None or old.pod.node != pod.node
        by_us = moved and bool(pod.node) and old is not None and not old.pod.node and pod.ours
        state = Seen(
            pod,
            since if old is None or moved else old.bound,
            -math.inf if old is None else old.labelled if old.pod.labels == pod.labels else now,
            by_us or (old is not None and not moved and old.scheduled),
        )
        self.seen[uid] = state
        return state if by_us and pod.holds else None

    def lately(self, since: float) -> Iterator[Seen]:
        """Yield all states of pods, those of now and those that ended after this moment."""
        yield from self.seen.values()
        for ended, state in self._past:
            if ended >= since:
                yield state

    def domains(self, node: str, key: str, moment: float) -> set[str | None]:
        """Return the values that a label of a node had around a moment; None where it had none."""
        history = self._histories.get(node)
        versions = history.around(moment) if history else []
        return {version.labels.get(key) if version else None for version in versions}
