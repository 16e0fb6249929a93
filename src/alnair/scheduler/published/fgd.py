"""FGD: the node and GPU where fragmentation grows the least (Weng et al., USENIX ATC'23)."""

from collections.abc import Callable, Sequence

import numpy as np

from alnair.model.fragmentation import WorkloadClass
from alnair.model.workload import PodSpec
from alnair.scheduler.columns import Column, Rows
from alnair.scheduler.framework import Cluster, Depends, Normalize
from alnair.scheduler.published.room import WHOLE, Room
from alnair.scheduler.published.target import Index, Target


class PublishedFGD:
    """Scores by how much F of the node falls: 50 = not at all, and integers, so that nodes tie.

    Args:
        workload: that free GPUs should be of use to; in the published protocol that of the whole
            list of pods, known before the first one arrives.
    """

    name = "PublishedFGD"

    def __init__(self, workload: Sequence[WorkloadClass]) -> None:
        self._workload = tuple(workload)
        self._target: tuple[Cluster, int, Target] | None = None

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Gain":
        """Compile the score."""
        return _Gain(spec, cluster, self._table(cluster))

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs; the lowest index of the best ones wins."""
        if spec.gpu is None or spec.gpu.whole:
            return None
        gain = _Gain(spec, cluster, self._table(cluster))

        def scores(rows: Rows) -> Column:
            found = gain.of_gpus(rows)
            return found + np.linspace(1.0, 0.0, len(found), endpoint=False)[:, None]

        return scores

    def _table(self, cluster: Cluster) -> Target:
        devices = cluster.devices
        models = len(devices.models)
        if self._target is None or self._target[0] is not cluster or self._target[1] != models:
            target = Target(self._workload, tuple(devices.models), len(devices.model))
            self._target = (cluster, models, target)
        return self._target[2]


class _Gain:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster, target: Target) -> None:
        self._room = Room(spec, cluster)
        self._devices = cluster.devices
        self._target = target

    def __call__(self, rows: Rows) -> Column:
        room = self._room
        if 0 < room.milli < WHOLE:
            best: Column = self.of_gpus(rows).max(axis=0, initial=0.0)
            return best
        left, before, after = self._states(rows)
        target = self._target
        free = np.count_nonzero(left == WHOLE, axis=0)
        parts = target.parts(after, left)
        gain = (target.parts(before, left) - parts).sum(axis=0)
        gain -= target.useful(before, free)
        gain += target.useful(after, free if not room.gpus else np.maximum(free - room.gpus, 0))
        if room.gpus:
            full = np.full_like(after, int(WHOLE))
            gain += room.gpus * target.parts(after, full)
        return _score(gain)

    def of_gpus(self, rows: Rows) -> Column:
        """Return the score of each GPU for the share, 0 where it has no room."""
        room, target = self._room, self._target
        left, before, after = self._states(rows)
        wanted = int(room.milli)
        parts = target.parts(after, left)
        gain = parts - target.parts(after, np.maximum(left - wanted, 0))
        gain += (target.parts(before, left) - parts).sum(axis=0)
        free = left == WHOLE
        count = np.count_nonzero(free, axis=0)
        gain -= target.useful(before, count)
        useful = target.useful(after, count)
        if not isinstance(useful, float):
            opened = target.useful(after, np.maximum(count - 1, 0))
            gain += np.where(free, opened, useful)
        found: Column = np.where(left >= wanted, _score(gain), 0.0)
        return found

    def _states(self, rows: Rows) -> tuple[Index, Index, Index]:
        """Return what is free of GPUs in milli, and the tables' states before and after."""
        room, target = self._room, self._target
        left = room.milli_left(rows).astype(np.intp)
        model = self._devices.model[0, rows].astype(np.intp)
        cpu = room.cpu_left(rows)
        return left, target.state(model, cpu), target.state(model, cpu - room.cpu_milli)


def _score(gain: Column) -> Column:
    score: Column = np.floor(100.0 / (1.0 + np.exp(gain / -1000.0)))
    return score
