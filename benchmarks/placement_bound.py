"""How little GPU any policy can leave unallocated: bounds by linear programming.

Two bounds, both in percent of the cluster's GPUs, for a trace and an order of arrival of the openb
protocol (Weng et al., USENIX ATC'23):

- `all_shared`: what the sizes of the shared pods cost if all of them are placed, whoever places
  them: the fewest GPUs that hold them (the LP of the cutting-stock problem, by column generation:
  Gilmore and Gomory, 1961) less what they ask for.
- `hindsight`: the least that is left if one may choose, knowing all arrivals, which pods to accept
  and may move everything. Nodes of one shape are pooled and parts of pods may be placed, so that no
  policy can be below it. A policy that refuses no pod that fits cannot reach it.

Needs scipy (`make bench` installs it).
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from alnair.traces.openb import WHOLE, TraceNode, TracePod
from lib import machine
from lib import placement_cases as cases

#: A pattern is worth adding if it improves the objective by more than this, in milli-GPU.
_WORTH = 1e-6


class _Shape(msgspec.Struct, frozen=True):
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class _Class(msgspec.Struct, frozen=True):
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]


def best_pattern(sizes: Sequence[int], worth: Sequence[float]) -> tuple[float, list[int]]:
    """Return the most that one GPU can hold by worth, and how many of each size (a knapsack)."""
    best = np.zeros(WHOLE + 1)
    choice = np.full(WHOLE + 1, -1)
    for room in range(1, WHOLE + 1):
        best[room], choice[room] = best[room - 1], -1
        for i, size in enumerate(sizes):
            if size <= room and best[room - size] + worth[i] > best[room] + 1e-12:
                best[room], choice[room] = best[room - size] + worth[i], i
    counts, room = [0] * len(sizes), WHOLE
    while room > 0:
        if choice[room] < 0:
            room -= 1
        else:
            counts[choice[room]] += 1
            room -= sizes[choice[room]]
    return float(best[WHOLE]), counts


def fewest_gpus(demand: Counter[int]) -> float:
    """Return the fewest GPUs (a lower bound, fractional) that hold so many slices of each size."""
    sizes = sorted(demand)
    if not sizes:
        return 0.0
    patterns = [
        [WHOLE // size if i == j else 0 for j in range(len(sizes))] for i, size in enumerate(sizes)
    ]
    wanted = np.array([demand[size] for size in sizes], float)
    while True:
        matrix = -np.array(patterns, float).T
        found = linprog(np.ones(len(patterns)), A_ub=matrix, b_ub=-wanted, method="highs")
        prices = -found.ineqlin.marginals
        value, pattern = best_pattern(sizes, prices.tolist())
        if value <= 1 + 1e-9:
            return float(found.fun)
        patterns.append(pattern)


class _Pooled:
    """The LP: most milli-GPU of accepted pods, nodes pooled by shape."""

    def __init__(self, nodes: Sequence[TraceNode], pods: Sequence[TracePod]) -> None:
        self.shapes = Counter(
            _Shape(n.cpu_milli, n.memory_mib, n.gpus, n.model) for n in nodes if n.gpus
        )
        self.classes = Counter(
            _Class(p.cpu_milli, p.memory_mib, p.gpus, p.gpu_milli, p.models) for p in pods if p.gpus
        )
        self.sizes = sorted({c.gpu_milli for c in self.classes if c.gpu_milli < WHOLE})
        self.patterns = [
            (s, [WHOLE // size if i == j else 0 for j in range(len(self.sizes))])
            for s in range(len(self.shapes))
            for i, size in enumerate(self.sizes)
        ]

    def most(self) -> float:
        """Return the most milli-GPU that can be allocated."""
        while True:
            value, worth = self._solve()
            new = []
            for s, prices in enumerate(worth):
                gpu_price, *of_sizes = prices
                if self.sizes:
                    gain, pattern = best_pattern(self.sizes, of_sizes)
                    if gain > gpu_price + _WORTH:
                        new.append((s, pattern))
            if not new:
                return value
            self.patterns += new

    def _solve(self) -> tuple[float, list[list[float]]]:
        shapes, classes, sizes = list(self.shapes), list(self.classes), self.sizes
        # Rows: per shape GPUs, cores, memory, then per shape and size the slices; then classes.
        per_shape = 3 + len(sizes)
        row_of_class = per_shape * len(shapes)
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        cost: list[float] = []

        def put(row: int, value: float) -> None:
            rows.append(row)
            columns.append(len(cost))
            values.append(value)

        for i, c in enumerate(classes):
            for s, shape in enumerate(shapes):
                small = c.gpus > shape.gpus or c.cpu_milli > shape.cpu_milli
                if small or c.memory_mib > shape.memory_mib:
                    continue
                if c.models and shape.model not in c.models:
                    continue
                first = s * per_shape
                if c.gpu_milli < WHOLE:
                    put(first + 3 + sizes.index(c.gpu_milli), 1)
                else:
                    put(first, c.gpus)
                put(first + 1, c.cpu_milli)
                put(first + 2, c.memory_mib)
                put(row_of_class + i, 1)
                cost.append(-c.gpus * c.gpu_milli)
        for s, pattern in self.patterns:
            first = s * per_shape
            put(first, 1)
            for j, count in enumerate(pattern):
                if count:
                    put(first + 3 + j, -count)
            cost.append(0)
        room: list[float] = []
        for shape, count in self.shapes.items():
            room += [shape.gpus * count, shape.cpu_milli * count, shape.memory_mib * count]
            room += [0] * len(sizes)
        room += list(self.classes.values())
        matrix = sparse.csr_matrix((values, (rows, columns)), shape=(len(room), len(cost)))
        found = linprog(cost, A_ub=matrix, b_ub=room, method="highs")
        prices = -found.ineqlin.marginals
        worth = []
        for s in range(len(shapes)):
            first = s * per_shape
            worth.append([prices[first], *prices[first + 3 : first + per_shape]])
        return -float(found.fun), worth


def bounds(nodes: Sequence[TraceNode], arrivals: Sequence[TracePod]) -> dict[str, float]:
    """Return the bounds for pods in the order in which they arrive."""
    capacity = WHOLE * sum(node.gpus for node in nodes)
    found: dict[str, float] = {}
    for at in (100, 130):
        # The last arrival that counts for this percentage; by then most can be allocated.
        demand, last = 0, 0
        for i, pod in enumerate(arrivals):
            demand += pod.demand
            if round(100 * demand / capacity) <= at:
                last = i + 1
        there = arrivals[:last]
        most = _Pooled(nodes, there).most()
        found[f"hindsight_at_{at}"] = round(100 - 100 * most / capacity, 2)
        shared = Counter(p.gpu_milli for p in there if p.gpus and p.gpu_milli < WHOLE)
        lost = WHOLE * fewest_gpus(shared) - sum(size * n for size, n in shared.items())
        found[f"all_shared_at_{at}"] = round(100 * lost / capacity, 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=",".join(cases.TRACES))
    parser.add_argument("--seeds", default="42,43,44", help="42 to 44 are the published orders")
    parser.add_argument("--out", type=Path, help="where the result goes too")
    chosen = parser.parse_args()
    found: dict[str, dict[str, dict[str, float]]] = {}
    for trace in chosen.traces.split(","):
        for seed in chosen.seeds.split(","):
            case = cases.case(trace, int(seed))
            bound = bounds(case.nodes, [arrival.pod for arrival in case.arrivals])
            found.setdefault(trace, {})[seed] = bound
            print(trace, seed, bound, file=sys.stderr, flush=True)
    result = json.dumps(
        {"benchmark": "placement_bound", "bounds": found, "machine": machine.describe()}
    )
    if chosen.out:
        chosen.out.write_text(result)
    print(result)


if __name__ == "__main__":
    main()
