"""What the pods of each namespace hold, for quotas."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from alnair.model.workload import PodSpec

_NOTHING: Final[Mapping[str, int]] = {}


class Usage:
    """Requests of the pods on nodes, and on their way there, by namespace, in base units.

    Nothing is counted before `start`: clusters without quotas do not pay for them.
    """

    def __init__(self) -> None:
        self.counting = False
        #: Namespaces that hold less than they did, in order; the reader empties it.
        self.freed: dict[str, None] = {}
        self._used: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def start(self, held: Iterable[tuple[str, PodSpec]]) -> None:
        """Begin to count, with what is held now by namespace."""
        self.counting = True
        self._used.clear()
        for namespace, spec in held:
            self.add(namespace, spec)

    def add(self, namespace: str, spec: PodSpec, sign: int = 1) -> None:
        """Count a pod, or take it away with `sign=-1`."""
        if not self.counting:
            return
        if sign < 0:
            self.freed[namespace] = None
        used = self._used[namespace]
        for resource, amount in spec.requests:
            used[resource] += sign * amount

    def of(self, namespace: str) -> Mapping[str, int]:
        """Return what the namespace holds per resource."""
        return self._used.get(namespace, _NOTHING)
