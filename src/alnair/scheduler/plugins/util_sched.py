"""UtilSched: by what GPUs are measured to do, and what the pod is expected to add.

A GPU's score is the weighted mean of up to three terms of 0-100 each; a term about which nothing is
known, or nothing fresh, drops out of the mean:

- **basic**: how much GPU it is: its memory over that of the largest model in the cluster, times the
  model's weight.
- **utilization**: how idle it is, `100 - (percent of time + percent of memory in use) / 2`.
- **allocated**: how well the pod's expected use fills it without crowding it. With p the percent of
  time in use together with the pod, that is `100 p / target` up to the target, and falls to 0 at
  100 %; likewise for memory, without a target; the mean of both. Source of the shape: Trimaran's
  TargetLoadPacking (scheduler-plugins).

So a pod of which nothing is known goes to the idlest GPU, and one whose demand is known goes where
it fits best. Where it would make tenants' GPU busier than the target it goes last, but it goes
there rather than wait. A node's score is that of its best GPU, min-max normalised over the feasible
nodes.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.arguments import Arguments, out_of_range
from alnair.scheduler.framework.busy_gpus import NotBusy, too_busy
from alnair.scheduler.framework.gpu_scores import BestGpu
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows

#: Source: the original's interference analysis (pairs are safe below it).
SAFE_UTILIZATION: Final = 70.0
#: What is left of a GPU's score beyond the target: less than any other GPU of the model has.
_BEYOND: Final = 0.1


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the terms."""

    basic: float = 1.0
    utilization: float = 2.0
    allocated: float = 2.0


class UtilSchedArguments(Arguments, frozen=True):
    """Arguments of UtilSched.

    `target_utilization` is the percent of time up to which GPUs are filled; beyond it pods join
    others only where no other GPU will do. `max_utilization` is the percent beyond which no pod may
    join another at all; 0 is no limit. `model_weights` are 0-100, and 100 for models that are not
    named.
    """

    target_utilization: float = SAFE_UTILIZATION
    max_utilization: float = 0.0
    weights: Weights = Weights()
    model_weights: Mapping[str, float] = {}

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        found = out_of_range("targetUtilization", self.target_utilization, 1, 100)
        found += out_of_range("maxUtilization", self.max_utilization, 0, 100)
        for name in ("basic", "utilization", "allocated"):
            found += out_of_range(f"weights.{name}", getattr(self.weights, name), 0, 100)
        for model, weight in self.model_weights.items():
            found += out_of_range(f"modelWeights.{model}", weight, 0, 100)
        if not (self.weights.basic + self.weights.utilization + self.weights.allocated):
            found.append("weights: all are 0, give one of them more")
        return found


class UtilSched:
    """Scores by load, and filters GPUs that are too busy to share if there is a limit."""

    name = "UtilSched"
    reads_loads = True
    Args = UtilSchedArguments

    def __init__(self, arguments: UtilSchedArguments | None = None) -> None:
        self.arguments = arguments or UtilSchedArguments()

    def filter(self, spec: PodSpec, cluster: Cluster) -> NotBusy | None:
        """Compile the filter."""
        demand, limit = spec.gpu, self.arguments.max_utilization
        return NotBusy(spec, cluster, limit) if demand and demand.memory_mib and limit else None

    def gpus(self, spec: PodSpec, cluster: Cluster) -> "_Load | None":
        """Compile the scores of GPUs."""
        return _Load(spec, cluster, self.arguments) if spec.gpu else None

    def score(self, spec: PodSpec, cluster: Cluster) -> BestGpu | None:
        """Compile the score."""
        if spec.gpu is None:
            return None
        return BestGpu(spec.gpu, cluster.devices, _Load(spec, cluster, self.arguments))


class _Load:
    """Scores of GPUs for one class."""

    def __init__(self, spec: PodSpec, cluster: Cluster, arguments: UtilSchedArguments) -> None:
        assert spec.gpu is not None
        self._spec = spec
        self._cluster = cluster
        self._arguments = arguments
        self._expected_memory = float(spec.expected_memory_mib or spec.gpu.memory_mib)

    def __call__(self, rows: Rows) -> Column:
        devices, loads, spec = self._cluster.devices, self._cluster.loads, self._spec
        weights, limit = self._arguments.weights, self._arguments.max_utilization
        target = min(self._arguments.target_utilization, limit or 100.0)
        memory = devices.memory[:, rows]
        total = np.maximum(memory, 1.0)
        util, used = loads.expected_util(rows), loads.expected_memory(rows)
        known = util >= 0
        used_percent = np.minimum(np.maximum(used, 0.0) * 100.0 / total, 100.0)
        weighted = weights.basic * self._basic(memory, rows)
        sum_of_weights = np.full(memory.shape, weights.basic)
        idle = 100.0 - (np.clip(util, 0.0, 100.0) + used_percent) / 2.0
        weighted += np.where(known, weights.utilization * idle, 0.0)
        sum_of_weights += weights.utilization * known
        if spec.expected_util:
            time = _filled(np.maximum(util, 0.0) + spec.expected_util, target)
            space = np.minimum(used_percent + self._expected_memory * 100.0 / total, 100.0)
            weighted += np.where(known, weights.allocated * (time + space) / 2.0, 0.0)
            sum_of_weights += weights.allocated * known
        scores: Column = weighted / np.maximum(sum_of_weights, 1e-9)
        if target < 100:
            beyond = too_busy(spec, self._cluster, rows, target)
            scores = np.where(beyond, scores * _BEYOND, scores)
        if limit:
            scores = np.where(too_busy(spec, self._cluster, rows, limit), -1.0, scores)
        return scores

    def _basic(self, memory: Column, rows: Rows) -> Column:
        devices = self._cluster.devices
        weights = np.array(
            [self._arguments.model_weights.get(model, 100.0) for model in devices.models] or [100.0]
        )
        largest = devices.largest_memory or 1.0
        basic: Column = memory / largest * weights[np.maximum(devices.model[:, rows], 0)]
        return basic


def _filled(percent: Column, target: float) -> Column:
    """Return 100 at the target, 0 at nothing and at 100 percent."""
    beyond = np.maximum(100.0 - percent, 0.0) * 100.0 / max(100.0 - target, 1e-9)
    filled: Column = np.where(percent <= target, percent * 100.0 / target, beyond)
    return filled
