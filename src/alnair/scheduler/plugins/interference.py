"""Interference: keep pods off GPUs where they and their neighbours would slow one another down.

Beside one neighbour the measured speed of the pair decides, where both pods say what they compute
and the two were measured together on the GPU's model. Everywhere else a model predicts it.
"""

from collections.abc import Mapping

import numpy as np

from alnair.model.near_names import near
from alnair.model.pair_rates import PairRates, Pairs, mode_of, problems
from alnair.model.slowdown_prediction import Contention, InterferenceModel
from alnair.model.workload import PodSpec
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.gpu_scores import BestGpu
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows


class InterferenceArguments(Arguments, frozen=True):
    """Arguments of Interference.

    `pairs` are the tables of measured pairs, by GPU model, as `alnair profile pair` writes them.
    The configuration's field `pairs` names a file of them, for all profiles.
    """

    pairs: Mapping[str, PairRates] = {}

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        return [f"pairs.{line}" for line in problems(self.pairs)]


class Interference:
    """Scores GPUs by `100 / slow-down`; `model` predicts what was not measured."""

    name = "Interference"
    reads_loads = True
    Args = InterferenceArguments

    def __init__(
        self,
        arguments: InterferenceArguments | None = None,
        *,
        model: InterferenceModel | None = None,
    ) -> None:
        self._pairs = Pairs((arguments or InterferenceArguments()).pairs)
        self._model = model or Contention()

    def gpus(self, spec: PodSpec, cluster: Cluster) -> "_SlowdownScore | None":
        """Compile the scores of GPUs."""
        shares = spec.gpu is not None and spec.gpu.memory_mib
        return _SlowdownScore(spec, cluster, self._pairs, self._model) if shares else None

    def score(self, spec: PodSpec, cluster: Cluster) -> BestGpu | None:
        """Compile the score."""
        scores = self.gpus(spec, cluster)
        if scores is None or spec.gpu is None:
            return None
        best = BestGpu(spec.gpu, cluster.devices, scores)
        best.normalize = None  # 100 is no slow-down, whatever there is elsewhere
        return best

    def why_gpu(self, spec: PodSpec, cluster: Cluster, row: int, slot: int) -> str:
        """Return by which figure a GPU is judged for a pod that is not on it."""
        scores = self.gpus(spec, cluster)
        return "" if scores is None else scores.why(row, slot)


class _SlowdownScore:
    def __init__(
        self, spec: PodSpec, cluster: Cluster, pairs: Pairs, model: InterferenceModel
    ) -> None:
        assert spec.gpu is not None
        self._spec = spec
        self._loads = cluster.loads
        self._devices = cluster.devices
        self._neighbours = cluster.neighbours
        self._model = model
        self._pairs = pairs
        self._mode = mode_of(spec.gpu)
        self._knows = spec.workload in pairs.kinds
        # By number of the GPU's model and of the neighbour's kind; 0 where nothing was measured.
        self._measured: Column = np.zeros((0, 0))

    def __call__(self, rows: Rows) -> Column:
        scores: Column = 100.0 / self._predicted(rows)
        if self._knows:
            slowdown = self._table()[self._devices.model[:, rows], self._neighbours.kinds(rows)]
            scores = np.where(slowdown > 0, 100.0 / np.maximum(slowdown, 1.0), scores)
        return scores

    def why(self, row: int, slot: int) -> str:
        """Return the figure for one GPU, and where it is from."""
        rows = np.array([row], np.intp)
        neighbours, tenants = self._neighbours, self._devices.tenants(rows)[slot, 0]
        if not tenants:
            return ""
        model = next(
            (n for n, at in self._devices.models.items() if at == self._devices.model[slot, row]),
            "",
        )
        kind = list(neighbours.number)[neighbours.kinds(rows)[slot, 0]]
        own = self._spec.workload
        if found := self._pairs.measured(model, self._mode, own, kind):
            return (
                f"beside {kind} it was measured ({found.table}) to run at {found.own:.2f} of its"
                f" speed alone, and {kind} at {found.other:.2f}"
            )
        predicted = 1.0 / float(self._predicted(rows)[slot, 0])
        return (
            f"predicted from the GPU's time, both run at {predicted:.2f} of their speed alone:"
            f" {self._why_not_measured(model, kind, int(tenants))}"
        )

    def _why_not_measured(self, model: str, kind: str, tenants: int) -> str:
        own, annotation = self._spec.workload, "ai.centaurus.io/workload-kind"
        if not self._pairs.tables:
            return "no measured pairs are known here"
        if tenants > 1:
            return f"pairs are measured, and it has {tenants} neighbours"
        if not own or not kind:
            who = "its neighbour" if own else "the pod"
            return f"{who} does not say what it computes ({annotation})"
        if not self._pairs.has(model):
            known = ", ".join(sorted({name.partition("/")[0] for name in self._pairs.tables}))
            return f"no pairs were measured on {model or 'this GPU'}, but on {known}"
        told = f"{own} was not measured beside {kind}"
        for name in (own, kind):
            if name not in self._pairs.kinds and (close := near(name, self._pairs.kinds, 1)):
                told += f"; {name} was never measured: did you mean {close[0]}?"
        return told

    def _predicted(self, rows: Rows) -> Column:
        util = self._loads.expected_util(rows)
        # Of a GPU that nobody measures, the pods that came last may be known all the same.
        others = (util >= 0) * util + (util < 0) * self._loads.unseen_util[:, rows]
        predicted: Column = self._model.slowdown(self._spec.expected_util, others)
        return predicted

    def _table(self) -> Column:
        """Return the measured slow-downs; models and kinds are numbered as they are seen."""
        models, kinds = self._devices.models, self._neighbours.number
        shape = (len(models) + 1, len(kinds))  # where there is no GPU, the last row is read
        if self._measured.shape != shape:
            self._measured = np.zeros(shape)
            for model, at in models.items():
                for kind, number in kinds.items():
                    found = self._pairs.measured(model, self._mode, self._spec.workload, kind)
                    if found:
                        self._measured[at, number] = found.slowdown
        return self._measured
