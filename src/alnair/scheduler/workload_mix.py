"""What recent pods asked of GPUs: the workload that free GPUs should be of use to.

As in `alnair.model.fragmentation`, the most frequent classes count that together make up 95 % of
the pods. Source: Weng et al., *Beware of Fragmentation*, USENIX ATC'23, section 3.
"""

from collections import Counter, deque
from typing import Final

import msgspec

from alnair.model.fragmentation import COVERED
from alnair.model.workload import PodSpec

#: What the mix is to plugins that read objects: it changes like an object of this kind.
KIND: Final = "WorkloadMix"
#: Pods that are remembered, and how many new ones are gathered before the mix is made anew.
WINDOW: Final = 1000
BATCH: Final = 50
#: Classes at most; each costs time in every evaluation.
_CLASSES: Final = 30

_Key = tuple[int, int, int, int, tuple[str, ...], tuple[str, ...]]


class PodClass(msgspec.Struct, frozen=True):
    """Pods alike in what GPUs they can use; `share` is their part of the mix (0-1)."""

    share: float
    cpu_milli: int
    whole: int
    memory_mib: int
    compute: int
    models: tuple[str, ...] = ()
    models_not: tuple[str, ...] = ()


class WorkloadMix:
    """The mix of the last pods with GPUs, made anew in batches.

    Attributes:
        classes: the most frequent first; none before the first batch is full.
    """

    def __init__(self) -> None:
        self.classes: tuple[PodClass, ...] = ()
        self._window: deque[_Key] = deque(maxlen=WINDOW)
        self._new = 0

    def see(self, spec: PodSpec) -> bool:
        """Take in a pod that is new; returns whether the mix is another one now."""
        demand = spec.gpu
        if demand is None or demand.problem:
            return False
        cpu = dict(spec.requests).get("cpu", 0)
        asked = (demand.whole, demand.memory_mib, demand.compute)
        self._window.append((cpu, *asked, demand.models, demand.models_not))
        self._new += 1
        if self._new < BATCH:
            return False
        self._new = 0
        before, self.classes = self.classes, self._made()
        return self.classes != before

    def _made(self) -> tuple[PodClass, ...]:
        kept: list[tuple[_Key, int]] = []
        covered = 0
        for key, count in Counter(self._window).most_common(_CLASSES):
            if covered >= COVERED * len(self._window):
                break
            kept.append((key, count))
            covered += count
        return tuple(PodClass(count / covered, *key) for key, count in kept)
