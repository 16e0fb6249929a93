"""Interference: keep pods off GPUs where they and their neighbours would slow one another down."""

from alnair.model.slowdown_prediction import Contention, InterferenceModel
from alnair.model.workload import PodSpec
from alnair.scheduler.framework.gpu_scores import BestGpu
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows


class Interference:
    """Scores GPUs by `100 / predicted slow-down`; `model` is what predicts it."""

    name = "Interference"
    reads_loads = True

    def __init__(self, model: InterferenceModel | None = None) -> None:
        self._model = model or Contention()

    def gpus(self, spec: PodSpec, cluster: Cluster) -> "_SlowdownScore | None":
        """Compile the scores of GPUs."""
        shares = spec.gpu is not None and spec.gpu.memory_mib
        return _SlowdownScore(spec, cluster, self._model) if shares else None

    def score(self, spec: PodSpec, cluster: Cluster) -> BestGpu | None:
        """Compile the score."""
        scores = self.gpus(spec, cluster)
        if scores is None or spec.gpu is None:
            return None
        best = BestGpu(spec.gpu, cluster.devices, scores)
        best.normalize = None  # 100 is no slow-down, whatever there is elsewhere
        return best


class _SlowdownScore:
    def __init__(self, spec: PodSpec, cluster: Cluster, model: InterferenceModel) -> None:
        self._own = spec.expected_util
        self._loads = cluster.loads
        self._model = model

    def __call__(self, rows: Rows) -> Column:
        util = self._loads.expected_util(rows)
        # Of a GPU that nobody measures, the pods that came last may be known all the same.
        others = (util >= 0) * util + (util < 0) * self._loads.unseen_util[:, rows]
        scores: Column = 100.0 / self._model.slowdown(self._own, others)
        return scores
