"""Inter-pod affinity over time: whether a binding of ours broke what pods require of neighbours."""

from collections.abc import Callable, Iterator

from alnair.checker.objects.affinity_terms import Term
from alnair.checker.objects.matching import about
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.over_time.bindings import KNOWN, Bindings, Seen
from alnair.checker.over_time.node_versions import AFTER
from alnair.checker.rules.neighbours import apart
from alnair.checker.violation import Violation

_Judge = Callable[[], Iterator[Violation]]


class NeighbourWatch:
    """Judges each binding of ours when all that matters to it has arrived.

    Args:
        bindings: All pods.
        grace: Seconds after which the pods of a gang are bound that were placed together.
    """

    def __init__(self, bindings: Bindings, grace: float) -> None:
        self._bindings = bindings
        self._grace = max(grace, AFTER)
        self._open: list[tuple[float, _Judge]] = []

    def bound(self, seen: Seen, now: float, earliest: float) -> None:
        """Look at a binding that happened after `earliest` and is seen now."""
        pod = seen.pod
        if seen.labelled > earliest - KNOWN:
            return  # it was decided on with other labels, perhaps
        known = [
            other.pod
            for other in self._bindings.seen.values()
            if other is not seen
            and other.pod.holds
            and not other.pod.deleting
            and (pod.apart or other.pod.apart)
            and other.known(earliest)
            # Its storage may have been waited for, so it may have been decided on long ago.
            and (other.scheduled or not pod.claims)
        ]
        pairs = [
            (holder, term, other)
            for neighbour in known
            for holder, other in ((pod, neighbour), (neighbour, pod))
            for term in holder.apart
            if about(term, other)
        ]
        if pairs:
            self._open.append((now + AFTER, lambda: self._apart(pairs, now)))
        if pod.near and not pod.claims and not any(term.vague for term in pod.near):
            firm = [
                other.pod
                for other in self._bindings.seen.values()
                if other is not seen
                and other.pod.holds
                and not other.pod.deleting
                and other.known(earliest)
                and _wanted(pod, other.pod)
            ]
            self._open.append((now + self._grace, lambda: self._near(pod, firm, now)))

    def judged(self, now: float, *, last: bool) -> Iterator[Violation]:
        """Yield what is wrong, as far as it can be told by now."""
        due = [judge for when, judge in self._open if last or when <= now]
        self._open = [] if last else [entry for entry in self._open if entry[0] > now]
        for judge in due:
            yield from judge()

    def _apart(
        self, pairs: list[tuple[CheckedPod, Term, CheckedPod]], moment: float
    ) -> Iterator[Violation]:
        for holder, term, other in pairs:
            here = self._bindings.domains(holder.node, term.key, moment)
            there = self._bindings.domains(other.node, term.key, moment)
            if here == there and len(here) == 1 and (domain := next(iter(here))) is not None:
                yield apart(holder, term, domain, other)

    def _near(self, pod: CheckedPod, firm: list[CheckedPod], moment: float) -> Iterator[Violation]:
        wanted = [
            other.pod
            for other in self._bindings.lately(moment - KNOWN)
            if other.pod.uid != pod.uid and other.pod.node and _wanted(pod, other.pod)
        ]
        # The first of pods that want each other may go anywhere.
        first = _wanted(pod, pod) and not any(self._counts(pod, other, moment) for other in firm)
        for term in pod.near:
            here = self._bindings.domains(pod.node, term.key, moment) - {None}
            if here and first:
                continue
            if any(here & self._bindings.domains(o.node, term.key, moment) for o in wanted):
                continue
            yield Violation(
                "pod-affinity",
                pod.title,
                pod.node,
                used=f"no such pod in {term.key}={', '.join(sorted(filter(None, here)))}",
                limit="a pod that its required affinity means",
            )

    def _counts(self, pod: CheckedPod, other: CheckedPod, moment: float) -> bool:
        """Whether the other is in some domain that the pod's terms are about."""
        return any(
            None not in self._bindings.domains(other.node, term.key, moment) for term in pod.near
        )


def _wanted(pod: CheckedPod, other: CheckedPod) -> bool:
    return all(about(term, other) for term in pod.near)
