"""Which volumes the booked pods use, and which storage is promised to claims of placed pods.

A promise lasts as long as the booking that it was made with: what is rolled back frees it. It is
harmless once the API server says the same.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar, cast

import numpy as np

from alnair.model.volumes import CLAIM, EPHEMERAL, ClaimBinding, ClaimKey
from alnair.model.workload import PodVolume
from alnair.scheduler.state.nodes.columns import Column

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
#: How often each value was counted; (value,) is once: most are just that, and as many as pods.
_Counted = dict[V, int] | tuple[V]

#: Answers that are kept; one may hold some bytes per node and claim.
_KEPT: Final = 64
#: A volume as one pod holds it: the namespace of the pod tells claims of the same name apart.
Held = tuple[str, PodVolume]


class VolumeIndex:
    """Volumes in use by row, and promised storage.

    Attributes:
        version: changes with every booking of a pod with volumes.
    """

    def __init__(self) -> None:
        self.version = 0
        self._on_row: dict[int, _Counted[Held]] = {}
        self._users: dict[tuple[str, str], _Counted[tuple[int, PodVolume]]] = {}
        #: Persistent volume → claims that it is promised to: of one pod, or of pods that share one.
        self._promised: dict[str, _Counted[ClaimKey]] = {}
        #: Claim → nodes that a volume is to be provisioned for.
        self._provisioned: dict[ClaimKey, _Counted[str]] = {}
        #: (rows,), different volumes of the pods on each row.
        self.distinct: Column = np.zeros(0)
        self._answers: OrderedDict[Hashable, tuple[Hashable, object]] = OrderedDict()

    def add(
        self,
        row: int,
        node: str,
        namespace: str,
        volumes: Iterable[PodVolume],
        claims: Iterable[ClaimBinding],
        sign: int = 1,
    ) -> None:
        """Count a pod's volumes and the promises to its claims; `sign` -1 takes them back."""
        self.version += 1
        if row >= self.distinct.size:
            self.distinct = np.pad(self.distinct, (0, row + 64 - self.distinct.size))
        for volume in volumes:
            _count(self._on_row, row, (namespace, volume), sign)
            _count(self._users, _name(namespace, volume), (row, volume), sign)
        self.distinct[row] = len(self._on_row.get(row, ()))
        for claim in claims:
            key = (claim.namespace, claim.name)
            if claim.volume:
                _count(self._promised, claim.volume, key, sign)
            else:
                _count(self._provisioned, key, node, sign)

    def on_row(self, row: int) -> Iterable[Held]:
        """Return the distinct volumes of the pods on a row."""
        return self._on_row.get(row, ())

    def users(self, namespace: str, volume: PodVolume) -> Iterable[tuple[int, PodVolume]]:
        """Return rows where pods use the volume, and how they use it."""
        return self._users.get(_name(namespace, volume), ())

    def promised_to(self, volume: str) -> ClaimKey | None:
        """Return the claim that a persistent volume is promised to."""
        return next(iter(self._promised.get(volume, ())), None)

    def provisioned_for(self, claim: ClaimKey) -> str:
        """Return the node that the claim's volume is to be provisioned for, or an empty text."""
        return next(iter(self._provisioned.get(claim, ())), "")

    def answer(self, question: Hashable, version: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for a question before, as long as the version is the same."""
        known = self._answers.get(question)
        if known is not None and known[0] == version:
            self._answers.move_to_end(question)
            return cast("T", known[1])
        value = make()
        self._answers[question] = (version, value)
        if len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
        return value


def _count(counts: dict[K, "_Counted[V]"], key: K, value: V, sign: int) -> None:
    counter = counts.get(key)
    if counter is None:
        counts[key] = (value,) if sign == 1 else {value: sign}
        return
    if isinstance(counter, tuple):
        counter = counts[key] = {counter[0]: 1}
    number = counter.get(value, 0) + sign
    if number:
        counter[value] = number
    else:
        del counter[value]
    if not counter:
        del counts[key]
    elif len(counter) == 1 and 1 in counter.values():
        (one,) = counter
        counts[key] = (one,)


def _name(namespace: str, volume: PodVolume) -> tuple[str, str]:
    """Return what makes volumes of several pods the same one."""
    claim = volume.kind in (CLAIM, EPHEMERAL)
    # Interned: there are as many as pods, and of a namespace they are one.
    return (sys.intern(f"claim {namespace}"), volume.name) if claim else (volume.kind, volume.name)
