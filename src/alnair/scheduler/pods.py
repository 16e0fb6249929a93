"""Which pods are where, as selectors see them: counts per row, kept current booking by booking.

Pods of one namespace with the same labels are one **identity**, and a selector is asked once per
identity. So a count is a column that a booking changes in one place.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec
import numpy as np

from alnair.model.workload import Labels, LabelSelector, Pod, PodAffinity, PodTerm
from alnair.scheduler.columns import Column
from alnair.scheduler.selectors import matches

TermKind = Literal["required", "preferred", "anti_required", "anti_preferred"]
TERM_KINDS: Final[tuple[TermKind, ...]] = (
    "required",
    "preferred",
    "anti_required",
    "anti_preferred",
)
#: Counts that are kept, each 8 bytes per row: 40 MB at 5,000 nodes.
_KEPT: Final = 1024


class PodQuery(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Pods to count: of these namespaces (None = all), with these labels (None = none at all)."""

    namespaces: frozenset[str] | None
    selector: LabelSelector | None
    #: Pods that are being deleted do not count.
    skip_deleting: bool = False


class _Identity:
    """Pods that no selector can tell apart."""

    __slots__ = ("counted_by", "deleting", "labels", "namespace", "rows")

    def __init__(self, namespace: str, labels: Labels, *, deleting: bool) -> None:
        self.namespace = namespace
        self.labels = dict(labels)
        self.deleting = deleting
        #: Row → number of these pods on it.
        self.rows: Counter[int] = Counter()
        self.counted_by: list[_Count] = []


class _Count:
    """The answer to a query."""

    __slots__ = ("column", "query")

    def __init__(self, query: PodQuery, size: int) -> None:
        self.query = query
        self.column: Column = np.zeros(size)

    def includes(self, identity: _Identity) -> bool:
        query = self.query
        return (
            query.selector is not None
            and (query.namespaces is None or identity.namespace in query.namespaces)
            and not (query.skip_deleting and identity.deleting)
            and matches(query.selector, identity.labels)
        )


class HeldTerm:
    """A term of pods that are on nodes, with the namespace of these pods.

    Attributes:
        counts: (rows,), number of pods on each row that hold the term.
        total: their number.
    """

    __slots__ = ("counts", "namespace", "term", "total")

    def __init__(self, term: PodTerm, namespace: str, size: int) -> None:
        self.term = term
        self.namespace = namespace
        self.counts: Column = np.zeros(size)
        self.total = 0


class PodIndex:
    """Booked pods by identity, and the affinity terms that they hold.

    Attributes:
        version: changes with every booking.
        terms_version: changes when a term gets its first holder or loses its last.
    """

    def __init__(self) -> None:
        self.version = 0
        self.terms_version = 0
        self._size = 0
        self._identities: dict[tuple[str, Labels, bool], _Identity] = {}
        self._counts: OrderedDict[PodQuery, _Count] = OrderedDict()
        self._terms: dict[TermKind, dict[tuple[PodTerm, str], HeldTerm]] = {
            kind: {} for kind in TERM_KINDS
        }

    def grow(self, size: int) -> None:
        """Make room for `size` rows."""
        extra = size - self._size
        if extra <= 0:
            return
        for count in self._counts.values():
            count.column = np.pad(count.column, (0, extra))
        for held in self._held():
            held.counts = np.pad(held.counts, (0, extra))
        self._size = size

    def counts(self, query: PodQuery) -> Column:
        """Return how many of the pods are on each row; ask anew each time, it is kept current."""
        count = self._counts.get(query)
        if count is None:
            count = self._counts[query] = self._count(query)
            if len(self._counts) > _KEPT:
                self._drop(self._counts.popitem(last=False)[1])
        else:
            self._counts.move_to_end(query)
        return count.column

    def terms(self, kind: TermKind) -> Iterable[HeldTerm]:
        """Return the distinct terms of a kind that pods on nodes hold."""
        return self._terms[kind].values()

    @property
    def has_terms(self) -> bool:
        """Whether any pod on a node has inter-pod affinity or anti-affinity."""
        return any(self._terms.values())

    def add(self, row: int, pod: Pod, sign: int = 1) -> None:
        """Count a pod on a row, or take it away with `sign=-1`: the same pod as was added."""
        key = (pod.namespace, pod.labels, pod.deleting)
        identity = self._identities.get(key)
        if identity is None:
            identity = self._identities[key] = _Identity(
                pod.namespace, pod.labels, deleting=pod.deleting
            )
            identity.counted_by = [c for c in self._counts.values() if c.includes(identity)]
        rows = identity.rows
        rows[row] += sign
        if not rows[row]:
            del rows[row]
            if not rows:
                del self._identities[key]
        for count in identity.counted_by:
            count.column[row] += sign
        if pod.spec.pod_affinity is not None:
            self._hold(row, pod.namespace, pod.spec.pod_affinity, sign)
        self.version += 1

    def _hold(self, row: int, namespace: str, affinity: PodAffinity, sign: int) -> None:
        for kind in TERM_KINDS:
            terms = self._terms[kind]
            held_terms: tuple[PodTerm, ...] = getattr(affinity, kind)
            for term in held_terms:
                held = terms.get((term, namespace))
                if held is None:
                    held = terms[term, namespace] = HeldTerm(term, namespace, self._size)
                    self.terms_version += 1
                held.counts[row] += sign
                held.total += sign
                if not held.total:
                    del terms[term, namespace]
                    self.terms_version += 1

    def _held(self) -> Iterator[HeldTerm]:
        for terms in self._terms.values():
            yield from terms.values()

    def _count(self, query: PodQuery) -> _Count:
        count = _Count(query, self._size)
        for identity in self._identities.values():
            if count.includes(identity):
                identity.counted_by.append(count)
                for row, number in identity.rows.items():
                    count.column[row] += number
        return count

    def _drop(self, count: _Count) -> None:
        for identity in self._identities.values():
            if count in identity.counted_by:
                identity.counted_by.remove(count)
