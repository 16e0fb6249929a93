"""ElasticQuotas over time: no binding of ours takes a namespace above its `max`."""

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from alnair.checker.objects.amounts import UnreadableError, shown
from alnair.checker.objects.requests import read
from alnair.checker.over_time.bindings import KNOWN, Bindings, Seen
from alnair.checker.over_time.node_versions import AFTER
from alnair.checker.violation import Violation

Manifest = Mapping[str, Any]
_Limits = dict[str, Fraction]
#: A quota that is not there, or cannot be read, limits nothing.
_NO_LIMITS: _Limits = {}


class QuotaWatch:
    """The quotas with all their versions, and the bindings that may have broken them."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        #: Namespace → quota → since when it limits what.
        self._versions: dict[str, dict[str, list[tuple[float, _Limits]]]] = {}
        self._open: list[tuple[float, float, Seen, _Limits]] = []

    def take(
        self, listed: Iterable[Manifest] | None, changes: Iterable[tuple[str, Manifest]], now: float
    ) -> None:
        """Take a list of all quotas, or changes."""
        if listed is not None:
            there = {_key(manifest): manifest for manifest in listed}
            for namespace, quotas in self._versions.items():
                for name in quotas:
                    if (namespace, name) not in there:
                        self._note(namespace, name, _NO_LIMITS, now)
            for key, manifest in there.items():
                self._note(*key, _limits(manifest), now)
        for kind, manifest in changes:
            limits = _NO_LIMITS if kind == "DELETED" else _limits(manifest)
            self._note(*_key(manifest), limits, now)

    def has(self, namespace: str) -> bool:
        """Whether the namespace ever had a quota."""
        return namespace in self._versions

    def bound(self, seen: Seen, now: float, earliest: float) -> None:
        """Look at a binding that happened after `earliest` and is seen now."""
        pod = seen.pod
        if not self.has(pod.namespace):
            return
        used: _Limits = {}
        for other in self._bindings.seen.values():
            if (
                other.pod.namespace == pod.namespace
                and other.pod.ours
                and other.pod.holds
                and not other.pod.deleting
                and (other.scheduled or (other.bound <= earliest - KNOWN and not pod.claims))
            ):
                for resource, value in other.pod.needs.items():
                    used[resource] = used.get(resource, Fraction(0)) + value
        # Its storage may have been waited for, so it may have been decided on long ago.
        since = -math.inf if pod.claims else earliest - KNOWN
        self._open.append((now + AFTER, since, seen, used))

    def judged(self, now: float, *, last: bool) -> Iterator[Violation]:
        """Yield what is wrong, as far as it can be told by now."""
        due = [entry for entry in self._open if last or entry[0] <= now]
        self._open = [] if last else [entry for entry in self._open if entry[0] > now]
        for _, since, seen, used in due:
            yield from self._exceeded(seen, used, since)

    def _exceeded(self, seen: Seen, used: _Limits, since: float) -> Iterator[Violation]:
        pod = seen.pod
        for name, versions in sorted(self._versions[pod.namespace].items()):
            ends = [begin for begin, _ in versions[1:]] + [math.inf]
            valid = [
                limits for (_, limits), end in zip(versions, ends, strict=True) if end >= since
            ]
            for resource, asked in sorted(pod.needs.items()):
                if not asked or not all(resource in limits for limits in valid):
                    continue
                limit = max(limits[resource] for limits in valid)
                if used[resource] > limit:
                    yield Violation(
                        "quota-max",
                        f"elasticquota {pod.namespace}/{name} {resource}",
                        used=f"{shown(used[resource])} with {pod.title}",
                        limit=shown(limit),
                    )

    def _note(self, namespace: str, name: str, limits: _Limits, now: float) -> None:
        versions = self._versions.setdefault(namespace, {}).setdefault(name, [(-math.inf, {})])
        if versions[-1][1] != limits:
            versions.append((now, limits))


def _key(manifest: Manifest) -> tuple[str, str]:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def _limits(manifest: Manifest) -> _Limits:
    spec = manifest.get("spec") or {}
    try:
        read(spec.get("min"))
        return read(spec.get("max"))
    except UnreadableError:
        return _NO_LIMITS
