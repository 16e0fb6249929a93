"""F in the floating point of the published simulator, where its rounding decides.

A pod without GPUs often leaves F of a node as it is, while its cores move a class of the workload
from one of the simulator's sums, such as "lacks a GPU", to another, "lacks both". Added up in
another order, F is then another number in its last bits, and the score 49 instead of 50. That
happens to less than 1 in 100 such scores, but it ends ties between hundreds of nodes: without it
the figures of single traces with GPU models are off by up to 0.15 points.
"""

from collections.abc import Sequence

import numpy as np

from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.published.fragmentation_table import Index
from alnair.scheduler.state.nodes.columns import Column

#: The sums, in the order in which they are added up; what is usable is not.
_BOTH, _GPU, _CPU, _FITS, _FITS_NOT, _MODEL = range(6)


class Rounding:
    """F as that simulator adds it up.

    Args:
        workload: the target workload, in its order.
        models: the GPU models of the cluster, in the order of their numbers; -1 = no model.
    """

    def __init__(self, workload: Sequence[WorkloadClass], models: Sequence[str]) -> None:
        self._workload = tuple(workload)
        self._models = (*models, "")
        self._cores: Column = np.unique([float(c.cpu_milli) for c in workload])
        self._known: dict[tuple[int, int, tuple[int, ...]], float] = {}

    def level(self, cpu_left: Column) -> Index:
        """Return how many of the classes' sizes fit into so many millicores: all F depends on."""
        found: Index = self._cores.searchsorted(cpu_left, "right")
        return found

    def fragmented(self, model: int, level: int, left: tuple[int, ...]) -> float:
        """Return F of a node in milli-GPUs.

        Args:
            model: number of its GPUs' model.
            level: of its free millicores.
            left: milli that are free of its GPUs.
        """
        key = (model, level, left)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._sum(self._models[model], level, left)
        return found

    def _sum(self, model: str, level: int, left: tuple[int, ...]) -> float:
        cpu = self._cores[level - 1] if level else -1.0
        total = sum(left)
        sums = [0.0] * 6
        for c in self._workload:
            has_cpu = c.cpu_milli <= cpu
            if not c.gpus:
                sums[_FITS if has_cpu else _FITS_NOT] += c.share * total
            elif c.models and model not in c.models:
                sums[_MODEL] += c.share * total
            elif sum(free >= c.gpu_milli for free in left) < c.gpus:
                sums[_GPU if has_cpu else _BOTH] += c.share * total
            elif not has_cpu:
                sums[_CPU] += c.share * total
            else:
                sums[_GPU] += c.share * sum(free for free in left if free < c.gpu_milli)
        found = 0.0
        for part in sums:  # one after another: sum() would add them up exactly
            found += part
        return found
