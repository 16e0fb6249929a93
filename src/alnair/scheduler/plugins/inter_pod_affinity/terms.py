"""Which pods a term of inter-pod affinity is about, and sums over topology domains."""

from collections.abc import Iterable, Mapping

import numpy as np

from alnair.model.workload import LabelSelector, PodSpec, PodTerm, Requirement
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Columns, Mask
from alnair.scheduler.state.objects.api_objects import Objects
from alnair.scheduler.state.pods.affinity_terms import HeldTerm, HeldTerms
from alnair.scheduler.state.pods.label_selectors import matches
from alnair.scheduler.state.pods.pod_index import PodQuery


def query(term: PodTerm, namespace: str, objects: Objects) -> PodQuery:
    """Return the pods that a term of a pod in the namespace is about."""
    return PodQuery(_namespaces(term, namespace, objects), term.selector)


def query_all(terms: Iterable[PodTerm], namespace: str, objects: Objects) -> PodQuery:
    """Return the pods that all of the terms (at least one) are about."""
    namespaces: frozenset[str] | None = None
    requirements: list[Requirement] = []
    for term in terms:
        these = _namespaces(term, namespace, objects)
        if term.selector is None:
            return PodQuery(frozenset(), None)
        requirements += term.selector.requirements
        if namespaces is None or these is None:
            namespaces = these if namespaces is None else namespaces
        else:
            namespaces &= these
    return PodQuery(namespaces, LabelSelector(tuple(dict.fromkeys(requirements))))


def includes(asked: PodQuery, spec: PodSpec) -> bool:
    """Return whether the query is about pods of this class."""
    return (
        asked.selector is not None
        and (asked.namespaces is None or spec.namespace in asked.namespaces)
        and matches(asked.selector, dict(spec.labels))
    )


def _namespaces(term: PodTerm, namespace: str, objects: Objects) -> frozenset[str] | None:
    """Return the namespaces that a term is about; None = all."""
    selector = term.namespace_selector
    if selector is None:
        return frozenset(term.namespaces or (namespace,))
    if not selector.requirements:
        return None
    return frozenset(term.namespaces).union(
        name
        for (_, name), labels in objects.of("Namespace").items()
        if matches(selector, dict(labels))
    )


class TermsAbout:
    """Terms of pods on nodes that are about pods of a class."""

    def __init__(self, spec: PodSpec, cluster: Cluster, held: HeldTerms) -> None:
        self._spec = spec
        self._labels = dict(spec.labels)
        self._namespace: Mapping[str, str] = dict(
            cluster.objects.of("Namespace").get(("", spec.namespace), ())
        )
        self._held = held
        self._edition: tuple[int, ...] = ()
        self._held_version = -1
        self._changes = 0
        self._version = 0
        self.terms: list[HeldTerm] = []

    def refresh(self) -> int:
        """Bring `terms` up to date; returns a number that changes with them and their holders.

        It is 0 as long as there are none.
        """
        held = self._held
        if held.version != self._held_version:
            self._held_version = held.version
            edition = held.edition(self._spec.labels)
            if edition != self._edition:
                self._edition = edition
                # Versions of terms only grow, so that of a list without some grows by more.
                self._changes += sum(term.version for term in self.terms) + 1
                self.terms = [t for t in held.about(self._spec.labels) if self._is_about(t)]
            self._version = self._changes + sum(t.version for t in self.terms) if self.terms else 0
        return self._version

    def _is_about(self, held: HeldTerm) -> bool:
        term = held.term
        selector, namespaces = term.selector, term.namespace_selector
        if selector is None:
            return False
        if namespaces is None and not term.namespaces:
            here = held.namespace == self._spec.namespace
        else:
            here = self._spec.namespace in term.namespaces or (
                namespaces is not None and matches(namespaces, self._namespace)
            )
        return here and matches(selector, self._labels)


def domain_sums(columns: Columns, key: str, counts: Column) -> tuple[Mask, Column]:
    """Return which rows have the label, and the sum of the counts over each row's domain.

    The sum is 0 where there is no label. `counts` covers the rows in use or more.
    """
    n = columns.n
    domain = columns.labels.column(key)[:n] + 1  # 0 = none
    sums = np.bincount(domain, weights=counts[:n]).astype(float, copy=False)
    if sums.size:
        sums[0] = 0.0
    present: Mask = domain > 0
    here: Column = sums[domain]
    return present, here
