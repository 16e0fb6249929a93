"""How many placements per second the core decides, alone in memory.

    python benchmarks/decision_core.py --nodes N --kind KIND [--pods P] [--repeat R]

The engine is told of N nodes of three sizes and of P pending pods before the clock starts; timed is
`engine.step` from the first decision to the last, on one thread, without Bindings being answered.
Every feasible node is scored for every pod. `distinct` means that no two pods request the same.

In the same run every placement is compared with a plain full scan, which knows nothing of classes,
caches or deltas: for each pod it computes fit, score and tie of all nodes anew. If one differs, the
run fails. The other kinds (`lib/core_kinds.py`, `lib/core_memory.py`) have no such oracle; they
check that what should be placed was.

The last line is JSON; rates are decisions per second over the repeats.
"""

import argparse
import gc
import hashlib
import json
import random
import resource
import statistics
import sys
import time
from typing import Any

import numpy as np

from alnair.model import names
from alnair.model.action import Bind
from alnair.model.nodes import Node
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import STEP_LIMIT, Engine
from alnair.scheduler.profiles import profiles
from alnair.scheduler.queue.unit import Place
from lib import core_kinds, core_memory, machine

GIB = 2**30
#: Kinds whose every placement is compared with a full scan, and decisions per second promised.
ORACLE = {"identical": 15_000, "distinct": 3_000}
#: Pods on nodes of kind memory, unless said otherwise.
HELD = 50_000
#: Node sizes: millicores and bytes.
SIZES = ((16_000, 64 * GIB), (32_000, 128 * GIB), (64_000, 256 * GIB))


def make_nodes(count: int, chance: random.Random) -> list[Node]:
    nodes = []
    for number in range(count):
        cpu, memory = chance.choice(SIZES)
        name = f"node-{number:05}"
        labels = {"kubernetes.io/hostname": name, "zone": f"z{number % 3}"}
        nodes.append(Node(name, {"cpu": cpu, "memory": memory, "pods": 110}, labels))
    return nodes


def make_specs(count: int, kind: str, chance: random.Random) -> list[PodSpec]:
    if kind == "identical":
        return [make_spec(500, GIB)] * count
    asked: set[tuple[int, int]] = set()
    while len(asked) < count:
        asked.add((chance.randrange(100, 1100), chance.randrange(100, 2100) * 2**20))
    shuffled = sorted(asked)
    chance.shuffle(shuffled)
    return [make_spec(cpu, memory) for cpu, memory in shuffled]


def make_spec(cpu: int, memory: int) -> PodSpec:
    return PodSpec(
        requests=(("cpu", cpu), ("memory", memory), ("pods", 1)),
        scored_cpu=cpu,
        scored_memory=memory,
    )


def decide(nodes: list[Node], specs: list[PodSpec], seed: int) -> tuple[list[str], float, float]:
    """Return where the engine puts each pod (empty = nowhere), and the seconds, wall and CPU."""
    engine = Engine(profiles(), seed=seed)
    engine.learn([events.NodeChanged(node) for node in nodes], 0.0)
    pods = [
        Pod(str(number), "default", f"pod-{number}", spec, names.SCHEDULER, float(number))
        for number, spec in enumerate(specs)
    ]
    engine.step([events.PodChanged(pod) for pod in pods], 1.0, limit=0)
    placed = [""] * len(specs)
    gc.collect()
    decided = []
    start, cpu = time.perf_counter(), time.process_time()
    while engine.view.count(Place.ACTIVE):
        decided.append(engine.step((), 1.0, STEP_LIMIT))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    for actions in decided:
        for action in actions:
            if isinstance(action, Bind):
                placed[int(action.pod.uid)] = action.node
    return placed, seconds, cpu


def full_scan(nodes: list[Node], specs: list[PodSpec], seed: int) -> list[str]:
    """Place the pods one by one, computing everything of every node anew for each."""
    there = np.array([[n.allocatable[r] for n in nodes] for r in ("cpu", "memory", "pods")])
    used = np.zeros_like(there)
    key = seed.to_bytes(8, "big", signed=True)
    ranks = [hashlib.blake2b(n.name.encode(), key=key).digest() for n in nodes]
    order = np.array(sorted(range(len(nodes)), key=ranks.__getitem__))
    placed = []
    for spec in specs:
        asked = np.array([amount for _, amount in spec.requests])[:, None]
        feasible = (used + asked <= there).all(axis=0)
        left = np.maximum(there[:2] - used[:2] - asked[:2], 0)
        score = (left * 100 // there[:2]).sum(axis=0) // 2
        score[~feasible] = -1
        best = order[score[order].argmax()]
        if score[best] < 0:
            placed.append("")
            continue
        used[:, best] += asked[:, 0]
        placed.append(nodes[best].name)
    return placed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument(
        "--kind", choices=(*ORACLE, *core_kinds.KINDS, "memory"), default="identical"
    )
    parser.add_argument("--pods", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if min(options.nodes, options.repeat) < 1 or (options.pods is not None and options.pods < 1):
        parser.error("--nodes, --pods and --repeat must be at least 1")
    if options.kind == "memory":
        found = core_memory.report(options.nodes, options.pods or HELD)
        how = "a process of its own that reads, projects and books all of it; ru_maxrss"
    elif options.kind in core_kinds.KINDS:
        found = core_kinds.report(
            options.kind, options.nodes, options.pods or 5_000, options.repeat, options.seed
        )
        what = (core_kinds.KINDS[options.kind].__doc__ or "").strip().partition("\n")[0]
        how = f"engine.step in memory, one thread, no Binding answered: {what}"
    else:
        found = compared(options)
        how = (
            "engine.step in memory, one thread, nodes and pods known before, no Binding answered; "
            "all placements of all repeats compared with a full scan of all nodes per pod"
        )
    given = {"nodes": options.nodes, "kind": options.kind, "seed": options.seed}
    print(json.dumps(given | found | {"machine": machine.describe(), "method": how}))
    return 1 if found.get("differing") else 0


def compared(options: argparse.Namespace) -> dict[str, Any]:
    """Place pods and compare every placement with a full scan."""
    pods = options.pods or 20_000
    chance = random.Random(options.seed)
    nodes = make_nodes(options.nodes, chance)
    specs = make_specs(pods, options.kind, chance)
    rates = []
    cpu_times = []
    runs = []
    for number in range(options.repeat):
        placed, seconds, cpu = decide(nodes, specs, options.seed)
        cpu_times.append(cpu)
        rates.append(len(specs) / seconds)
        runs.append(placed)
        print(f"run {number + 1}: {rates[-1]:,.0f} decisions/s", file=sys.stderr)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    want = full_scan(nodes, specs, options.seed)
    differing = sum(
        got != right for placed in runs for got, right in zip(placed, want, strict=True)
    )
    median = statistics.median(rates)
    return {
        "pods": pods,
        "placed": sum(map(bool, want)),
        "decisions_per_s": {
            "median": round(median),
            "min": round(min(rates)),
            "max": round(max(rates)),
        },
        "us_per_decision": round(1e6 / median, 1),
        "cpu_us_per_decision": round(1e6 * statistics.median(cpu_times) / len(specs), 1),
        "oracle_equal": not differing,
        "compared": len(runs) * len(specs),
        "differing": differing,
        "nodes_scored_pct": 100,
        "peak_rss_mb": round(peak, 1),
        "repeat": options.repeat,
        "targets": {
            "decisions_per_s": {
                "at_least": ORACLE[options.kind],
                "met": median >= ORACLE[options.kind],
            }
        },
    }


if __name__ == "__main__":
    sys.exit(main())
