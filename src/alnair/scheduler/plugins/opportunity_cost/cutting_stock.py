"""What free room on a GPU is worth, given the sizes of slices that pods ask for.

Slices are cut from GPUs as lengths are cut from stock. The linear program of the fewest GPUs that
hold all slices has a price per size (its duals), and room is worth the most that it holds at these
prices. Source: Gilmore and Gomory, *A Linear Programming Approach to the Cutting-Stock Problem*,
Operations Research 9 (1961); the bound for stopping early is Farley's (1990).
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from alnair.scheduler.state.nodes.columns import Column

#: A GPU has so many units; sizes and room are counted in them.
UNITS: Final = 1000
#: A pattern that is worth less than this beyond a GPU is not worth entering.
_TOLERANCE: Final = 1e-7
#: Distinct sizes at most: others count as the next larger one that is kept.
_SIZES: Final = 40
#: Patterns tried at most; prices are of use, if not the best, after any number of them.
_STEPS: Final = 400


def worth(demand: Mapping[int, float]) -> Column:
    """Return what each amount of free room on one GPU is worth, in GPUs.

    Args:
        demand: how many slices there are of each size, in units (1 to `UNITS`).

    Returns:
        The shape (UNITS + 1,), from 0 to 1, not falling. Without demand room is worth its size.
    """
    sizes, counts = _merged(demand)
    if not sizes:
        return np.arange(UNITS + 1) / UNITS
    _, values = _solve(sizes, counts)
    worth: Column = values / values[UNITS]
    return worth


def bound(demand: Mapping[int, float]) -> float:
    """Return the fewest GPUs that hold the slices, if slices could be split over patterns."""
    sizes, counts = _merged(demand)
    if not sizes:
        return 0.0
    prices, values = _solve(sizes, counts)
    return float((prices * counts).sum() / values[UNITS])


def knapsack(sizes: list[int], prices: Column) -> Column:
    """Return the most that fits into each amount of room, (UNITS + 1,); sizes repeat at will."""
    values = np.zeros(UNITS + 1)
    for size, price in zip(sizes, prices.tolist(), strict=True):
        if price <= 0:
            continue
        # Up to one more of it, then up to two more, up to four more, and so on.
        while size <= UNITS:
            np.maximum(values[size:], values[:-size] + price, out=values[size:])
            size, price = 2 * size, 2 * price
    return values


def _merged(demand: Mapping[int, float]) -> tuple[list[int], Column]:
    """Return the sizes and how many there are of each, the rare ones counted as larger ones."""
    found = {size: count for size, count in demand.items() if count > 0}
    often = sorted(found, key=lambda size: (-found[size], size))[:_SIZES]
    kept = sorted({*often, max(found)} if found else ())
    counts = dict.fromkeys(kept, 0.0)
    for size, count in found.items():
        counts[kept[np.searchsorted(kept, size)]] += count
    return kept, np.array(list(counts.values()))


def _solve(sizes: list[int], counts: Column) -> tuple[Column, Column]:
    """Return the price of each size, and what each amount of room is worth at these prices.

    The simplex method on patterns, each found by a knapsack. Less of a size than asked for is never
    allowed and more is, so a size whose price would fall below 0 may be left over.
    """
    per_gpu = UNITS // np.array(sizes)
    inverse = np.diag(1.0 / per_gpu)
    used = counts / per_gpu
    cost = np.ones(len(sizes))
    for _ in range(_STEPS):
        # Sums rather than products of matrices: those depend on the machine's library.
        prices: Column = (cost[:, None] * inverse).sum(axis=0)
        values = knapsack(sizes, prices)
        if prices[least := int(prices.argmin())] < -_TOLERANCE:
            entering, its_cost = -inverse[:, least], 0.0
        elif values[UNITS] > 1 + _TOLERANCE:
            pattern = _pattern(sizes, prices, values)
            entering, its_cost = (inverse * pattern).sum(axis=1), 1.0
        else:
            break
        limits = np.full(len(sizes), np.inf)
        np.divide(used, entering, out=limits, where=entering > _TOLERANCE)
        leaving = int(limits.argmin())
        if not np.isfinite(limits[leaving]):
            break
        cost[leaving] = its_cost
        row = inverse[leaving] / entering[leaving]
        inverse -= entering[:, None] * row
        inverse[leaving] = row
        amount = limits[leaving]
        used = np.maximum(used - entering * amount, 0.0)
        used[leaving] = amount
    prices = np.maximum((cost[:, None] * inverse).sum(axis=0), 0.0)
    return prices, knapsack(sizes, prices)


def _pattern(sizes: list[int], prices: Column, values: Column) -> Column:
    """Return how many of each size make up the best use of a whole GPU."""
    counts = np.zeros(len(sizes))
    room = int(np.searchsorted(values, values[UNITS] - _TOLERANCE / 2))
    while room > 0 and values[room] > _TOLERANCE:
        gains = [
            values[room - size] + price - values[room] if size <= room else -np.inf
            for size, price in zip(sizes, prices.tolist(), strict=True)
        ]
        best = int(np.argmax(gains))
        if gains[best] < -_TOLERANCE:
            break
        counts[best] += 1
        room -= sizes[best]
    return counts
