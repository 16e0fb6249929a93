"""Scores of NUMA zones, on columns.

Source of formulas: `pkg/noderesourcetopology` of scheduler-plugins. All divide integers.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from alnair.model.numa_topology import FAR
from alnair.model.workload import ContainerPart as Part
from alnair.scheduler.state.nodes.columns import Column, Mask
from alnair.scheduler.state.numa.numa_zones import ABSENT, Zones

Strategy = Literal["LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"]

#: Pods that need so many zones of a node with so many are given up: they score 0.
_MOST_COMBINATIONS: Final = 2_000

Scorer = Callable[[Sequence[Part], NDArray[np.intp]], Column]
#: From (requested, capacity, whole units of both) per resource to 0-100 per zone.
_Formula = Callable[[list[tuple[str, float, Column]]], Column]


def part_scorer(strategy: Strategy, zones: Zones, weights: Mapping[str, int]) -> Scorer:
    """Return what scores rows for the parts of a pod that are aligned one by one."""
    if strategy == "LeastNUMANodes":
        return _FewestZones(zones)
    if strategy == "BalancedAllocation":
        return _PerZone(zones, _balance)
    return _PerZone(zones, _Allocation(weights, least=strategy == "LeastAllocated"))


class _PerZone:
    """Mean over the parts of the lowest score over the zones that can be used at all."""

    def __init__(self, zones: Zones, formula: _Formula) -> None:
        self._zones = zones
        self._formula = formula

    def __call__(self, parts: Sequence[Part], rows: NDArray[np.intp]) -> Column:
        zones = self._zones
        there = zones.ids[:, rows] >= 0
        total = np.zeros(len(rows))
        for part in parts:
            scores = np.zeros(there.shape)
            if part.requests and there.size:
                scores = self._formula([self._amount(n, a, rows) for n, a in part.requests])
            usable = np.where(there & (scores != 0), scores, np.inf)
            lowest = usable.min(axis=0, initial=np.inf)
            total += np.where(np.isinf(lowest), 0, lowest)
        mean: Column = np.trunc(total / max(len(parts), 1))
        return mean

    def _amount(
        self, name: str, amount: float, rows: NDArray[np.intp]
    ) -> tuple[str, float, Column]:
        column = self._zones.resources.get(name)
        if column is None:
            return name, amount, np.zeros((self._zones.ids.shape[0], len(rows)))
        return name, amount, np.maximum(self._zones.free[column][:, rows], 0)


class _Allocation:
    def __init__(self, weights: Mapping[str, int], *, least: bool) -> None:
        self._weights = weights
        self._least = least

    def __call__(self, amounts: list[tuple[str, float, Column]]) -> Column:
        total: Column | float = 0.0
        weights = 0
        for name, wanted, capacity in amounts:
            weight = self._weights.get(name, 1)
            weights += weight
            units, whole = _whole_units(name, wanted), np.ceil(_per_unit(name, capacity))
            used = whole - units if self._least else units
            score = np.floor(used * 100.0 / np.maximum(whole, 1.0))
            total = total + weight * np.where((capacity > 0) & (wanted <= capacity), score, 0.0)
        found: Column = np.floor(total / max(weights, 1))
        return found


def _balance(amounts: list[tuple[str, float, Column]]) -> Column:
    fractions = []
    for name, wanted, capacity in amounts:
        whole = np.ceil(_per_unit(name, capacity))
        part = _whole_units(name, wanted) / np.maximum(whole, 1.0)
        fractions.append(np.where(whole > 0, part, 1.0))
    each = np.array(fractions)
    variance = each.var(axis=0, ddof=1) if len(each) > 1 else np.zeros(each.shape[1:])
    score: Column = np.trunc((1 - variance) * 100)
    return np.where((each > 1).any(axis=0), 0.0, score)


def _per_unit(name: str, amount: Column) -> Column:
    return amount / 1000 if name == "cpu" else amount


def _whole_units(name: str, amount: float) -> float:
    """Return cores, not millicores: upstream divides what `Quantity.Value` gives."""
    return -(-amount // 1000) if name == "cpu" else amount


class _FewestZones:
    """The fewer zones the greediest part needs, the better; half a step more if they are near."""

    def __init__(self, zones: Zones) -> None:
        self._zones = zones

    def __call__(self, parts: Sequence[Part], rows: NDArray[np.intp]) -> Column:
        zones = self._zones
        free = {
            name: zones.free[column][:, rows]
            for name in dict.fromkeys(n for part in parts for n, _ in part.requests)
            if (column := zones.resources.get(name)) is not None
        }
        most = np.zeros(len(rows))
        nearest = np.ones(len(rows), bool)
        possible = nearest.copy()
        for part in parts:
            local = np.zeros(len(rows), bool)
            for name, _ in part.requests:
                if name in free:
                    local |= (free[name] >= 0).any(axis=0)
            chosen, near = self._combine(part, rows, free, local)
            count = chosen.sum(axis=0)
            possible &= (count > 0) | ~local
            nearest &= near | ~local
            most = np.maximum(most, count)
            _spread(part, chosen, free)
        step = 100 // np.maximum(zones.most[rows], 1)
        score = np.maximum(100 - most * step, 0) + np.where(nearest, step // 2, 0)
        return np.where(possible, np.where(most > 0, score, 100.0), 0.0)

    def _combine(
        self, part: Part, rows: NDArray[np.intp], free: Mapping[str, Column], wanted: Mask
    ) -> tuple[Mask, Mask]:
        """Return the zones to use, (slots, rows), and whether none as many are nearer."""
        there = self._zones.ids[:, rows] >= 0
        slots = there.shape[0]
        chosen = np.zeros(there.shape, bool)
        near = np.zeros(len(rows), bool)
        if any(name not in free for name, _ in part.requests):
            return chosen, near
        for size in range(1, slots + 1):
            left = np.flatnonzero(wanted & ~chosen.any(axis=0))
            if not len(left) or math.comb(slots, size) > _MOST_COMBINATIONS:
                break
            nearest = np.full(len(left), float(FAR))
            best = np.full(len(left), np.inf)
            for slots_used in itertools.combinations(range(slots), size):
                combination = np.array(slots_used, np.intp)
                exists = there[np.ix_(combination, left)].all(axis=0)
                costs = self._zones.costs[np.ix_(combination, combination, rows[left])]
                far = costs.mean(axis=(0, 1))
                nearest = np.where(exists & (far < nearest), far, nearest)
                fits = exists
                for name, amount in part.requests:
                    has = free[name][np.ix_(combination, left)]
                    fits = fits & (has >= 0).all(axis=0) & (has.sum(axis=0) >= amount)
                better = np.flatnonzero(fits & (far < best))
                best[better] = far[better]
                chosen[:, left[better]] = False
                chosen[np.ix_(combination, left[better])] = True
            near[left] = best == nearest
        return chosen, near


def _spread(part: Part, chosen: Mask, free: Mapping[str, Column]) -> None:
    """Take the part's requests from the chosen zones, in ascending order."""
    for name, amount in part.requests:
        if name not in free:
            continue
        rest = np.full(chosen.shape[1], float(amount))
        for slot in range(chosen.shape[0]):
            has = free[name][slot]
            taken = np.where(chosen[slot] & (has > 0), np.minimum(has, rest), 0.0)
            free[name][slot] = np.where(has >= 0, has - taken, ABSENT)
            rest -= taken
