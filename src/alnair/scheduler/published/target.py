"""F of FGD by table: what of a free GPU no pod of a target workload could use.

A class that asks for one GPU can use a free GPU or not whatever the node's others are, so the GPU's
part of F depends only on the node's model, its free cores, and what is free of that GPU; classes
with several GPUs ask for fully free ones and add a term by their number. Both are looked up.

Source: Weng et al., USENIX ATC'23, section 3; `alnair.model.fragmentation` is the definition in
plain Python.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from alnair.model.fragmentation import WorkloadClass
from alnair.scheduler.columns import Column

_WHOLE = 1000

Index = NDArray[np.intp]


class Target:
    """F in milli-GPUs, looked up by the state of GPUs.

    Args:
        workload: the target workload.
        models: the GPU models of the cluster, in the order of their numbers; one number more, -1,
            stands for no model.
        most: GPUs of a node at most.
    """

    def __init__(self, workload: Sequence[WorkloadClass], models: Sequence[str], most: int) -> None:
        with_gpus = [c for c in workload if c.gpus]
        self._cores = np.unique([float(c.cpu_milli) for c in with_gpus])
        levels = len(self._cores) + 1
        total = sum(c.share for c in workload)
        kinds = len(models) + 1
        use = np.zeros((kinds, levels, _WHOLE + 1))
        several = np.zeros((kinds, levels, most + 1))
        for c in with_gpus:
            level = int(np.searchsorted(self._cores, c.cpu_milli)) + 1
            for kind, model in enumerate((*models, "")):
                if c.models and model not in c.models:
                    continue
                if c.gpus == 1:
                    use[kind, level:, c.gpu_milli :] += c.share
                else:
                    several[kind, level:, c.gpus :] += c.share
        milli = np.arange(_WHOLE + 1.0)
        self._table: Column = (milli * (total - use)).ravel()
        self._several = (_WHOLE * np.arange(most + 1.0) * several).ravel()
        self._any_several = bool(several.any())
        self._levels = levels
        self._most = most

    def state(self, model: Index, cpu_left: Column) -> Index:
        """Return where the table is about a node: its model's number and free millicores."""
        level = self._cores.searchsorted(cpu_left, "right")
        found: Index = model % (self._table.size // (self._levels * (_WHOLE + 1)))
        found *= self._levels
        found += level
        return found

    def parts(self, state: Index, left: Index) -> Column:
        """Return each GPU's part of F: `left` in milli, shape (GPUs per node, rows)."""
        found: Column = self._table.take(state * (_WHOLE + 1) + left)
        return found

    def useful(self, state: Index, free: Index) -> Column | float:
        """Return what classes with several GPUs can use of so many free ones, to be taken off F."""
        if not self._any_several:
            return 0.0
        found: Column = self._several.take(state * (self._most + 1) + free)
        return found
