"""Which pods are where, as selectors see them: counts per row, kept current booking by booking.

Pods of one namespace with the same labels are one **identity**, and a selector is asked once per
identity. So a count is a column that a booking changes in one place.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Literal

import msgspec
import numpy as np

from alnair.model.workload import Labels, LabelSelector, Pod, PodAffinity, PodTerm
from alnair.scheduler.state.nodes.columns import Column
from alnair.scheduler.state.pods.affinity_terms import HeldTerms
from alnair.scheduler.state.pods.label_selectors import anchors, matches

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
    #: Pods for which room is only held do not count.
    skip_expected: bool = False


class _Identity:
    """Pods that no selector can tell apart."""

    __slots__ = ("_more", "_only", "counted_by", "deleting", "expected", "namespace", "pairs")

    def __init__(self, namespace: str, labels: Labels, *, deleting: bool, expected: bool) -> None:
        self.namespace = namespace
        #: The labels; not as a mapping, for there may be as many of these as pods.
        self.pairs = labels
        self.deleting = deleting
        self.expected = expected
        # Row → number of these pods on it; the row alone where there is one pod, as mostly: a
        # mapping for each would be the larger part of this.
        self._only = -1
        self._more: dict[int, int] | None = None
        self.counted_by: tuple[_Count, ...] = ()

    @property
    def labels(self) -> dict[str, str]:
        """The labels, made anew each time."""
        return dict(self.pairs)

    def rows(self) -> Iterable[tuple[int, int]]:
        """Return rows, and how many of these pods are on each."""
        if self._more is not None:
            return self._more.items()
        return ((self._only, 1),) if self._only >= 0 else ()

    def count(self, row: int, sign: int) -> bool:
        """Count a pod on a row, or take it away; returns whether any is left."""
        if self._more is None:
            if self._only < 0 and sign == 1:
                self._only = row
                return True
            if self._only == row and sign == -1:
                self._only = -1
                return False
            self._more = {self._only: 1} if self._only >= 0 else {}
        number = self._more.get(row, 0) + sign
        if number:
            self._more[row] = number
        else:
            del self._more[row]
        return bool(self._more)


class _Count:
    """The answer to a query."""

    __slots__ = ("column", "query", "version")

    def __init__(self, query: PodQuery, size: int, version: int) -> None:
        self.query = query
        self.column: Column = np.zeros(size)
        #: That of the index when this changed last.
        self.version = version

    def includes(self, identity: _Identity) -> bool:
        query = self.query
        return (
            query.selector is not None
            and (query.namespaces is None or identity.namespace in query.namespaces)
            and not (query.skip_deleting and identity.deleting)
            and not (query.skip_expected and identity.expected)
            and matches(query.selector, identity.labels)
        )


class PodIndex:
    """Booked pods by identity, and the affinity terms that they hold.

    Attributes:
        version: changes with every booking.
    """

    def __init__(self) -> None:
        self.version = 0
        self._size = 0
        self._identities: dict[tuple[str, Labels, bool, bool], _Identity] = {}
        self._counts: OrderedDict[PodQuery, _Count] = OrderedDict()
        # So that neither a new pod is compared with all queries nor a new query with all pods:
        # counts by what their selectors ask for, identities by the labels that queries asked for.
        self._asking: dict[tuple[str, str] | None, dict[PodQuery, _Count]] = {}
        self._labelled: dict[str, dict[str, dict[int, _Identity]]] = {}
        self._held: dict[TermKind, HeldTerms] = {kind: HeldTerms() for kind in TERM_KINDS}

    def grow(self, size: int) -> None:
        """Make room for `size` rows."""
        extra = size - self._size
        if extra <= 0:
            return
        for count in self._counts.values():
            count.column = np.pad(count.column, (0, extra))
        self._size = size

    def counts(self, query: PodQuery) -> Column:
        """Return how many of the pods are on each row; ask anew each time, it is kept current."""
        return self._of(query).column

    def version_of(self, query: PodQuery) -> int:
        """Return a number that changes whenever the counts of the query do."""
        return self._of(query).version

    def held(self, kind: TermKind) -> HeldTerms:
        """Return the terms of a kind that pods on nodes hold."""
        return self._held[kind]

    def add(self, row: int, pod: Pod, sign: int = 1, *, expected: bool = False) -> None:
        """Count a pod on a row, or take it away with `sign=-1`: the same pod as was added.

        One that is `expected` is not there: room is held for it.
        """
        key = (pod.namespace, pod.labels, pod.deleting, expected)
        identity = self._identities.get(key)
        if identity is None:
            identity = self._identities[key] = _Identity(
                pod.namespace, pod.labels, deleting=pod.deleting, expected=expected
            )
            self._file(identity)
        if not identity.count(row, sign):
            del self._identities[key]
            self._unfile(identity)
        self.version += 1
        for count in identity.counted_by:
            count.column[row] += sign
            count.version = self.version
        if pod.spec.pod_affinity is not None:
            self._hold(row, pod.namespace, pod.spec.pod_affinity, sign)

    def _hold(self, row: int, namespace: str, affinity: PodAffinity, sign: int) -> None:
        for kind, held in self._held.items():
            terms: tuple[PodTerm, ...] = getattr(affinity, kind)
            for term in terms:
                held.change(row, term, namespace, sign)

    def _of(self, query: PodQuery) -> _Count:
        count = self._counts.get(query)
        if count is None:
            count = self._counts[query] = self._count(query)
            if len(self._counts) > _KEPT:
                self._drop(self._counts.popitem(last=False)[1])
        else:
            self._counts.move_to_end(query)
        return count

    def _count(self, query: PodQuery) -> _Count:
        count = _Count(query, self._size, self.version)
        for pair in anchors(query.selector):
            self._asking.setdefault(pair, {})[query] = count
            for identity in self._with(pair):
                if count.includes(identity):
                    identity.counted_by += (count,)
                    for row, number in identity.rows():
                        count.column[row] += number
        return count

    def _drop(self, count: _Count) -> None:
        for pair in anchors(count.query.selector):
            del self._asking[pair][count.query]
            if not self._asking[pair]:
                del self._asking[pair]
            for identity in self._with(pair):
                if count in identity.counted_by:
                    identity.counted_by = tuple(c for c in identity.counted_by if c is not count)

    def _with(self, pair: tuple[str, str] | None) -> Iterable[_Identity]:
        """Return the identities that have a label; all of them if none is given."""
        if pair is None:
            return self._identities.values()
        key, value = pair
        by_value = self._labelled.get(key)
        if by_value is None:
            by_value = self._labelled[key] = {}
            for identity in self._identities.values():
                if key in (labels := identity.labels):
                    by_value.setdefault(labels[key], {})[id(identity)] = identity
        return by_value.get(value, {}).values()

    def _file(self, identity: _Identity) -> None:
        for pair in (None, *identity.pairs):
            if counts := self._asking.get(pair):
                identity.counted_by += tuple(c for c in counts.values() if c.includes(identity))
        labels = identity.labels if self._labelled else {}
        for key, by_value in self._labelled.items():
            if key in labels:
                by_value.setdefault(labels[key], {})[id(identity)] = identity

    def _unfile(self, identity: _Identity) -> None:
        labels = identity.labels if self._labelled else {}
        for key, by_value in self._labelled.items():
            if key in labels:
                same = by_value[labels[key]]
                del same[id(identity)]
                if not same:
                    del by_value[labels[key]]
