"""Pod classes: pods alike in all that decides where they can go and how well.

Labels and namespace of a pod matter only as far as some selector can see them. Were they always
part of the class, each pod of a StatefulSet would be a class of its own (they differ in the label
that says their name) and nothing could be cached. So of the labels only those keys count that a
selector mentions; as long as there is no selector, none do.
"""

from collections.abc import Iterable

import msgspec

from alnair.model.workload import Controller, Labels, LabelSelector, Pod, PodSpec
from alnair.scheduler.state.pods.default_selectors import CONTROLLERS

_KEPT = 50_000


class Classes:
    """Which labels matter, and the class of each pod.

    Attributes:
        generation: changes when classes got finer: those handed out before are void.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._keys: set[str] = set()
        self._selecting = False
        self._by_controller = False
        self._classes: dict[tuple[PodSpec, str, Labels, Controller | None], PodSpec] = {}
        self._namespaces: frozenset[str] = frozenset()

    def notice(self, spec: PodSpec) -> None:
        """Take in the selectors that pods of this spec bring along."""
        if not spec.spread and spec.pod_affinity is None:
            return
        selectors = [c.selector for c in spec.spread]
        keys = {key for c in spec.spread for key in c.match_label_keys}
        if (affinity := spec.pod_affinity) is not None:
            for term in (
                *affinity.required,
                *affinity.preferred,
                *affinity.anti_required,
                *affinity.anti_preferred,
            ):
                selectors.append(term.selector)
                keys.update(term.match_label_keys, term.mismatch_label_keys)
        self.notice_selectors(selectors, keys)

    def notice_selectors(
        self, selectors: Iterable[LabelSelector | None], keys: Iterable[str] = ()
    ) -> None:
        """Take in selectors of pods, and label keys that matter besides."""
        new = {r.key for s in selectors if s is not None for r in s.requirements} | set(keys)
        if self._selecting and new <= self._keys:
            return
        self._selecting = True
        self._keys |= new
        self.generation += 1
        self._classes.clear()

    def notice_peers(self, kind: str, selector: LabelSelector) -> None:
        """Take in the selector of a Service or of a controller of pods."""
        if kind in CONTROLLERS and not self._by_controller:
            self._by_controller = True
            self._selecting = False  # so that classes change even if no key is new
        self.notice_selectors([selector])

    def tell_apart(self, namespaces: Iterable[str]) -> None:
        """Let pods of these namespaces be classes of their own."""
        wanted = frozenset(namespaces)
        if wanted != self._namespaces:
            self._namespaces = wanted
            self.generation += 1
            self._classes.clear()

    def of(self, pod: Pod) -> PodSpec:
        """Return the pod's class: its spec, with what selectors can see of namespace and labels."""
        spec = pod.spec
        # Claims are named within a namespace.
        if not self._selecting and not spec.volumes and pod.namespace not in self._namespaces:
            return spec
        keys = self._keys
        labels = tuple(pair for pair in pod.labels if pair[0] in keys)
        controller = pod.controller if self._by_controller else None
        key = (spec, pod.namespace, labels, controller)
        known = self._classes.get(key)
        if known is None:
            if len(self._classes) >= _KEPT:
                self._classes.clear()
            known = msgspec.structs.replace(
                spec, namespace=pod.namespace, labels=labels, controller=controller
            )
            self._classes[key] = known
        return known
