"""F of FGD by table: what of a free GPU no pod of a target workload could use.

A class that asks for one GPU can use a free GPU or not whatever the node's others are, so the GPU's
part of F depends only on the node's model, its free cores, and what is free of that GPU; classes
with several GPUs ask for fully free ones and add a term by their number. Both are looked up.

Source: Weng et al., USENIX ATC'23, section 3; `alnair.scheduler.published.fragmentation` is the
definition in plain Python.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.state.nodes.columns import Column
from alnair.traces.openb import WHOLE

#: Entries of a table per state of a node: one for each thousandth that may be free.
STEPS: Final = WHOLE + 1

Index = NDArray[np.intp]


class Target:
    """F in milli-GPUs times pods, looked up by the state of a node and of its GPUs.

    Counted in pods of the list, not in shares of it, all values are integers: sums are exact in
    whatever order, and a node whose F stays the same ties with others of which that is true.

    Args:
        workload: the target workload.
        models: the GPU models of the cluster, in the order of their numbers.
        most: GPUs of a node at most.

    Attributes:
        pods: of the workload; divided by them, F is in milli-GPUs.
        parts: a GPU's part of F, at the place of its node's state plus its free milli.
        has_several: whether classes with several GPUs are in the workload.
    """

    def __init__(self, workload: Sequence[WorkloadClass], models: Sequence[str], most: int) -> None:
        with_gpus = [c for c in workload if c.gpus]
        self._cores = np.unique([float(c.cpu_milli) for c in with_gpus])
        self._levels = len(self._cores) + 1
        self._most = most
        # The last kind are nodes without a model.
        shape = (len(models) + 1, self._levels)
        use = np.zeros((*shape, STEPS))
        several = np.zeros((*shape, most + 1))
        for c in with_gpus:
            level = int(self._cores.searchsorted(c.cpu_milli)) + 1
            for kind, model in enumerate((*models, "")):
                if c.models and model not in c.models:
                    continue
                if c.gpus == 1:
                    use[kind, level:, c.gpu_milli :] += c.pods
                else:
                    several[kind, level:, c.gpus :] += c.pods
        self.pods = sum(c.pods for c in workload)
        self.parts: Column = (np.arange(float(STEPS)) * (self.pods - use)).ravel()
        self._several: Column = (WHOLE * np.arange(most + 1.0) * several).ravel()
        self.has_several = bool(several.any())

    def kinds(self, models: Index) -> Index:
        """Return the first state of nodes with these model numbers; -1 = no model."""
        found: Index = models % (self.parts.size // (self._levels * STEPS)) * self._levels
        return found

    def state(self, kinds: Index, cpu_left: Column) -> Index:
        """Return the place in `parts` of nodes with so many free millicores."""
        level = self._cores.searchsorted(cpu_left, "right")
        level += kinds
        level *= STEPS
        return level

    def useful(self, state: Index, free: Index) -> Column:
        """Return what classes with several GPUs can use of so many free ones, to be taken off F."""
        found: Column = self._several.take(state // STEPS * (self._most + 1) + free)
        return found
