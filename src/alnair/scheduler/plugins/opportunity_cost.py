"""OpportunityCost: pods go where what they take is worth the least to pods like those of late.

What a placement costs, in GPUs, is the sum of

- what the slice takes of its GPU: the room's worth before less its worth after
  (`alnair.scheduler.cutting_stock`). So a slice in a hole that no other could use costs nothing,
  and one that leaves such a hole costs a whole GPU;
- how many free GPUs are left without cores, softly: m ln(1 + e^(x/m)) with x the free GPUs less
  those that the free cores suffice for, at the cores per GPU that pods with GPUs ask for.

Costs are rounded, so that small differences do not scatter pods: nodes that cost alike are filled
one after another, in the order that breaks ties.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.arguments import Arguments, out_of_range
from alnair.scheduler.columns import Column, Rows, single
from alnair.scheduler.devices import LEVELS
from alnair.scheduler.framework import Cluster, Depends, Normalize
from alnair.scheduler.gpu_prices import GpuPrices
from alnair.scheduler.workload_mix import KIND

#: The score of a placement that costs nothing.
_EVEN = 100.0


class OpportunityCostArguments(Arguments, frozen=True):
    """Arguments of OpportunityCost.

    Attributes:
        step: costs are rounded to this many GPUs, which is one point of the score.
        softness: m of the formula, in GPUs: the smaller, the sharper.
    """

    step: float = 0.1
    softness: float = 0.2

    def problems(self) -> list[str]:
        """Return what is out of range."""
        return [
            *out_of_range("step", self.step, 0.001, 1.0),
            *out_of_range("softness", self.softness, 0.001, 10.0),
        ]


class OpportunityCost:
    """Scores nodes and GPUs by what the placement takes from the pods to come."""

    name = "OpportunityCost"
    Args = OpportunityCostArguments

    def __init__(self, arguments: OpportunityCostArguments | None = None) -> None:
        self._arguments = arguments or OpportunityCostArguments()
        self._prices: tuple[Cluster, int, int, GpuPrices] | None = None

    def kinds(self, spec: PodSpec) -> Sequence[str]:
        """Return the mix: prices change with it."""
        return (KIND,)

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Cost":
        """Compile the score."""
        return _Cost(spec, cluster, self._priced(cluster), self._arguments)

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs."""
        if spec.gpu is None or not spec.gpu.memory_mib:
            return None
        table = self._priced(cluster).cost_of_slice(spec.gpu)

        def scores(rows: Rows) -> Column:
            # GPUs that differ by less than the error of a sum are alike: the fuller one goes first.
            liking: Column = np.round(100.0 - 40.0 * table[cluster.devices.cell[:, rows]], 6)
            return liking

        return scores

    def _priced(self, cluster: Cluster) -> GpuPrices:
        mix, kinds = cluster.mix, cluster.devices.kinds
        if self._prices is not None:
            known, version, count, prices = self._prices
            if known is cluster and version == mix.version and count == len(kinds):
                return prices
        prices = GpuPrices(mix.demand, tuple(kinds))
        self._prices = (cluster, mix.version, len(kinds), prices)
        return prices


class _Cost:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(
        self,
        spec: PodSpec,
        cluster: Cluster,
        prices: GpuPrices,
        arguments: OpportunityCostArguments,
    ) -> None:
        self._devices, self._columns = cluster.devices, cluster.columns
        self._cpu_column = cluster.columns.resource("cpu")
        demand = spec.gpu
        sliced = demand is not None and bool(demand.memory_mib)
        self._table = prices.cost_of_slice(demand) if demand and sliced else None
        self._step, self._soft = arguments.step, arguments.softness
        self._levels_per_core = LEVELS / prices.cores_per_gpu if prices.cores_per_gpu else 0.0
        cpu = dict(spec.requests).get("cpu", 0)
        taken = demand.whole * LEVELS if demand else 0
        if demand and sliced:
            taken += prices.size(demand.memory_mib, demand.compute, 1)
        self._shift = (cpu * self._levels_per_core - taken) / LEVELS

    def __call__(self, rows: Rows) -> Column:
        devices = self._devices
        if (row := single(rows)) is not None:
            return np.array([self._of(row)])
        cost: Column | float = 0.0
        if self._table is not None:
            cost = self._table[devices.cell[:, rows]].min(axis=0, initial=2.0)
        if self._levels_per_core:
            lacking = self._columns.free[self._cpu_column, rows] * -self._levels_per_core
            lacking += devices.room[rows]
            lacking /= LEVELS * self._soft
            after = np.logaddexp(0.0, lacking + self._shift / self._soft)
            after -= np.logaddexp(0.0, lacking)
            after *= self._soft
            after += cost
            cost = after
        elif isinstance(cost, float):
            cost = np.zeros(devices.room[rows].size)
        score: Column = np.maximum(_EVEN - np.floor(cost / self._step + 0.5), 0.0)
        return score

    def _of(self, row: int) -> float:
        """Return the score of one row: in plain numbers, since arrays of one are slow."""
        devices = self._devices
        cost = 0.0
        if self._table is not None:
            table = self._table
            cost = min([table.item(cell) for cell in devices.cell[:, row].tolist()], default=2.0)
        if self._levels_per_core:
            free = self._columns.free.item(self._cpu_column, row)
            lacking = (devices.room.item(row) - free * self._levels_per_core) / (
                LEVELS * self._soft
            )
            cost += self._soft * (_softplus(lacking + self._shift / self._soft) - _softplus(lacking))
        return max(_EVEN - math.floor(cost / self._step + 0.5), 0.0)


def _softplus(x: float) -> float:
    """Return ln(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
