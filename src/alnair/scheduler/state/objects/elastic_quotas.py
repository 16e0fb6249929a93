"""Elastic quotas: what a namespace may take, what it may borrow, and who goes first.

A namespace has at least `min` and at most `max`. What others leave of their `min` may be borrowed,
and is taken back from the borrowers when its owner needs it (see
`alnair.scheduler.preemption.reclaim`). The rules are those of scheduler-plugins'
CapacityScheduling, but for one: a namespace within its `min` is never refused because others have
borrowed; it gets its share back by reclaim.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from alnair.model.quota import Quota
from alnair.scheduler.state.objects.api_objects import Objects
from alnair.scheduler.state.objects.namespace_usage import Usage

KIND: Final = "ElasticQuota"
_NO_QUOTA: Final = (1, 0.0)


class Quotas:
    """The quotas as they are now, beside what is used."""

    def __init__(self, objects: Objects, usage: Usage) -> None:
        self._objects = objects
        self._usage = usage
        self._read = 0
        self._of: dict[str, Quota] = {}
        self._guaranteed: Counter[str] = Counter()

    def refresh(self) -> bool:
        """Take in changed quotas; returns whether there were any."""
        version = self._objects.version(KIND)
        if version == self._read:
            return False
        self._read = version
        by_namespace: dict[str, list[Quota]] = {}
        for (namespace, _), quota in self._objects.of(KIND).items():
            if not quota.problem:
                by_namespace.setdefault(namespace, []).append(quota)
        self._of = {namespace: _strictest(found) for namespace, found in by_namespace.items()}
        self._guaranteed = Counter()
        for quota in self._of.values():
            self._guaranteed.update(quota.min)
        return True

    @property
    def namespaces(self) -> Iterable[str]:
        """The namespaces that have a quota."""
        return self._of.keys()

    @property
    def guaranteed(self) -> Mapping[str, int]:
        """What all quotas together guarantee, by resource."""
        return self._guaranteed

    def refuse(self, namespace: str, requests: Mapping[str, int]) -> str:
        """Return why the namespace may not take so much more now; empty if it may.

        Args:
            namespace: Of the pods.
            requests: What they ask for together, in base units.
        """
        quota = self._of.get(namespace)
        if quota is None:
            return ""
        used = self._usage.of(namespace)
        for resource, limit in sorted(quota.max.items()):
            asked = requests.get(resource, 0)
            if asked and used.get(resource, 0) + asked > limit:
                return (
                    f"ElasticQuota {namespace}/{quota.name}: {_sum(resource, used, asked)} "
                    f"is more than max {_amount(resource, limit)}"
                )
        for resource, guaranteed in sorted(self._guaranteed.items()):
            asked, own = requests.get(resource, 0), quota.min.get(resource, 0)
            if not asked or used.get(resource, 0) + asked <= own:
                continue
            together = sum(self._usage.of(n).get(resource, 0) for n in self._of)
            if together + asked > guaranteed:
                return (
                    f"ElasticQuota {namespace}/{quota.name}: {_sum(resource, used, asked)} is more "
                    f"than min {_amount(resource, own)}, and nothing is left to borrow: all quotas "
                    f"together guarantee {_amount(resource, guaranteed)} and use "
                    f"{_amount(resource, together)}"
                )
        return ""

    def borrows(self, namespace: str) -> bool:
        """Return whether the namespace uses more than it is guaranteed, of anything."""
        quota = self._of.get(namespace)
        if quota is None:
            return False
        used = self._usage.of(namespace)
        return any(used.get(r, 0) > quota.min.get(r, 0) for r in self._guaranteed)

    def of(self, namespace: str) -> Quota | None:
        """Return the namespace's quota."""
        return self._of.get(namespace)

    def used(self, namespace: str) -> Mapping[str, int]:
        """Return what the namespace holds."""
        return self._usage.of(namespace)

    def tenant(self, namespace: str) -> str:
        """Return which tenant a namespace is: itself, or "" together with all without a quota."""
        return namespace if namespace in self._of else ""

    def turn(self, namespace: str) -> tuple[int, float]:
        """Return when the namespace's turn is among others with pods of the same priority.

        First those that have less than their `min`, the least served first; then those without a
        quota; then those that borrow. How well one is served is its dominant share: the largest of
        its used amounts over `min`.
        """
        quota = self._of.get(namespace)
        if quota is None:
            return _NO_QUOTA
        used = self._usage.of(namespace)
        share = max(
            (used.get(r, 0) / minimum for r, minimum in quota.min.items() if minimum), default=1.0
        )
        return (0 if share < 1.0 else 2), share


def _sum(resource: str, used: Mapping[str, int], asked: int) -> str:
    held = _amount(resource, used.get(resource, 0))
    return f"{resource} {held} used and {_amount(resource, asked)} asked"


def _amount(resource: str, amount: int) -> str:
    """Return an amount in base units as people write it in a quota."""
    return f"{amount / 1000:.15g}" if resource == "cpu" else str(amount)


def _strictest(quotas: list[Quota]) -> Quota:
    """Return what several quotas of a namespace say together: the least of each bound."""
    quotas = sorted(quotas, key=lambda q: q.name)
    result = quotas[0]
    for other in quotas[1:]:
        result = Quota(result.name, _least(result.min, other.min), _least(result.max, other.max))
    return result


def _least(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {
        r: min(amount for amount in (one.get(r), other.get(r)) if amount is not None)
        for r in sorted({*one, *other})
    }
