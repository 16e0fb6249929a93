"""Preemption over time: nobody is made to leave for pods that do not stand above him."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from alnair.checker.objects.pods import CheckedPod
from alnair.checker.over_time.bindings import Bindings, Seen
from alnair.checker.violation import Violation

#: Who is bound to the node within so long (seconds) afterwards came for the room, and who waited
#: within so long before may have wanted it.
WITHIN: Final = 60.0


class _Case(msgspec.Struct):
    """A pod that was preempted, and the highest priority that was bound to its node since."""

    moment: float
    pod: CheckedPod
    priority: int
    highest: int | None = None
    who: str = ""


class PreemptionWatch:
    """Follows what happens to the room of pods that were preempted.

    Args:
        bindings: All pods.
        has_quota: Whether a namespace has an ElasticQuota: its pods may be reclaimed.
    """

    def __init__(self, bindings: Bindings, has_quota: Callable[[str], bool]) -> None:
        self._bindings = bindings
        self._has_quota = has_quota
        self._cases: list[_Case] = []

    def preempted(self, pod: CheckedPod, now: float) -> None:
        """Note that a pod was made to leave now; what may be reclaimed for other reasons is not."""
        if not pod.ours or not pod.node or self._has_quota(pod.namespace):
            return
        # A gang leaves as one, so it counts as the least of its pods, and is idle if one is.
        unit = [pod]
        if pod.group:
            key = (pod.namespace, pod.group)
            lately = (state.pod for state in self._bindings.lately(now - WITHIN))
            unit += [other for other in lately if (other.namespace, other.group) == key]
        if any(other.measured for other in unit):
            return
        priority = min(other.priority for other in unit)
        # Who stands above and waits may be the reason, even if he goes elsewhere in the end.
        if not any(
            state.pod.ours and not state.pod.node and state.pod.priority > priority
            for state in self._bindings.lately(now - WITHIN)
        ):
            self._cases.append(_Case(now, pod, priority))

    def bound(self, seen: Seen, now: float) -> None:
        """Note a binding of ours."""
        pod = seen.pod
        for case in self._cases:
            if case.pod.node != pod.node or now > case.moment + WITHIN:
                continue
            if case.highest is None or pod.priority > case.highest:
                case.highest, case.who = pod.priority, pod.title

    def judged(self, now: float, *, last: bool) -> Iterator[Violation]:
        """Yield what is wrong, as far as it can be told by now."""
        due = [case for case in self._cases if last or case.moment + WITHIN < now]
        self._cases = [] if last else [c for c in self._cases if c.moment + WITHIN >= now]
        for case in due:
            if case.highest is not None and case.highest <= case.priority:
                yield Violation(
                    "preemption-priority",
                    case.pod.title,
                    case.pod.node,
                    used=f"priority {case.highest} of {case.who}",
                    limit=f"above {case.priority}",
                )
