"""Fragmentation: pods go where they strand the least GPU, given what pods have lately asked for.

A placement is worth by how much it lets F fall (`alnair.scheduler.stranded`), brought to 0-100 by
the logistic function as in FGD: 50 = no change. Source: Weng et al., USENIX ATC'23, section 4.
"""

from collections.abc import Callable, Sequence

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.columns import Column, Rows
from alnair.scheduler.framework import Cluster, Depends, Normalize
from alnair.scheduler.stranded import Stranded
from alnair.scheduler.workload_mix import KIND


class Fragmentation:
    """Scores nodes and GPUs by expected stranded GPU."""

    name = "Fragmentation"

    def kinds(self, spec: PodSpec) -> Sequence[str]:
        """Return the mix, if the pod has GPUs."""
        return (KIND,) if spec.gpu else ()

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Gain | None":
        """Compile the score."""
        return _Gain(spec, cluster) if spec.gpu and cluster.mix.classes else None

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs."""
        if spec.gpu is None or not spec.gpu.memory_mib or not cluster.mix.classes:
            return None
        return _Gain(spec, cluster).gpus


class _Gain:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster) -> None:
        assert spec.gpu is not None
        self._demand = spec.gpu
        self._cpu = dict(spec.requests).get("cpu", 0)
        self._stranded = Stranded(cluster.mix.classes, cluster)

    def __call__(self, rows: Rows) -> Column:
        demand = self._demand
        if not demand.memory_mib:
            gain = self._stranded.gain_of_whole(demand, self._cpu, rows)
            return np.floor(_logistic(gain))
        best: Column = self.gpus(rows).max(axis=0, initial=0.0)
        return np.floor(best)

    def gpus(self, rows: Rows) -> Column:
        """Return the score of each GPU for the slice, 0 where it has no room."""
        gain = self._stranded.gain_of_slice(self._demand, self._cpu, rows)
        return np.where(self._stranded.fits(self._demand, rows), _logistic(gain), 0.0)


def _logistic(gain: Column) -> Column:
    score: Column = 100.0 / (1.0 + np.exp(-gain))
    return score
