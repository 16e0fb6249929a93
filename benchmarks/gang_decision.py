"""How long the core takes to decide gangs that must lie in one rack, all racks judged.

    python benchmarks/gang_decision.py [--nodes N] [--racks R] [--gangs G] [--size S] [--repeat K]

Without arguments: one gang of 1,000 pods over 5,000 nodes in 50 racks that are filled unevenly.
Timed is `engine.step`, from the first gang to the last, on one thread; no plan is written. It
is the engine's first decision, so compiling the class for all nodes is part of it.

In the same run a plain loop over nodes and racks, which knows nothing of columns, says for each
gang which rack is the tightest that has room for it. If the engine chose another, the run fails.

The last line is JSON; times are milliseconds of CPU for all gangs together.
"""

import argparse
import json
import platform
import random
import statistics
import sys
import time
from collections import defaultdict

from alnair.model import names
from alnair.model.action import WritePlan
from alnair.model.nodes import Node
from alnair.model.workload import Gang, GangTopology, Pod, PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles

GIB = 2**30
RACK = names.TOPOLOGY_PREFIX + "rack"
CPU, MEMORY, PODS = 64_000, 256 * GIB, 110
ASKED = {"cpu": 4_000, "memory": 8 * GIB, "pods": 1}


def make_nodes(count: int, racks: int) -> list[Node]:
    allocatable = {"cpu": CPU, "memory": MEMORY, "pods": PODS}
    return [
        Node(f"node-{n:05}", allocatable, {RACK: f"rack-{n * racks // count:03}"})
        for n in range(count)
    ]


def make_load(nodes: list[Node], chance: random.Random) -> list[Pod]:
    """Pods that run already: each rack is filled to another degree."""
    share = {node.labels[RACK]: chance.uniform(0.1, 0.8) for node in nodes}
    made = []
    for number, node in enumerate(nodes):
        used = round(CPU * share[node.labels[RACK]] * chance.uniform(0.5, 1.2))
        spec = PodSpec((("cpu", used), ("pods", 1)), used, 0)
        made.append(
            Pod(f"r{number}", "default", f"runs-{number}", spec, "other", 0.0, node=node.name)
        )
    return made


def make_gangs(count: int, size: int) -> tuple[list[Gang], list[Pod]]:
    spec = PodSpec(tuple(sorted(ASKED.items())), ASKED["cpu"], ASKED["memory"])
    gangs, pods = [], []
    for g in range(count):
        name = f"gang-{g:04}"
        gangs.append(Gang("default", name, size, float(g), topology=GangTopology(RACK)))
        pods += [
            Pod(f"{name}-{i}", "default", f"{name}-{i:04}", spec, names.SCHEDULER, 0.0, group=name)
            for i in range(size)
        ]
    return gangs, pods


def decide(
    nodes: list[Node], load: list[Pod], gangs: list[Gang], pods: list[Pod], seed: int
) -> tuple[dict[str, dict[str, str]], float]:
    """Return where the engine puts each gang's pods, and the seconds of CPU."""
    engine = Engine(profiles(), seed=seed)
    engine.learn([events.NodeChanged(node) for node in nodes], 0.0)
    engine.learn([events.GangChanged(gang) for gang in gangs], 0.0)
    engine.learn([events.PodChanged(pod) for pod in (*load, *pods)], 0.0)
    begin = time.process_time()
    actions = engine.step([], 0.0, limit=len(pods))
    seconds = time.process_time() - begin
    return {
        action.gang.name: {pod: planned[0] for pod, planned in action.plan.items()}
        for action in actions
        if isinstance(action, WritePlan)
    }, seconds


def check(
    nodes: list[Node], load: list[Pod], gangs: list[Gang], found: dict[str, dict[str, str]]
) -> None:
    """Fail unless each gang lies whole in the tightest rack that had room for it."""
    rack_of = {node.name: node.labels[RACK] for node in nodes}
    free = {node.name: dict(node.allocatable) for node in nodes}
    for pod in load:
        for name, amount in pod.spec.requests:
            free[pod.node][name] -= amount
    for gang in gangs:
        room: dict[str, int] = defaultdict(int)
        for node, left in free.items():
            room[rack_of[node]] += max(0, min(left[name] // ASKED[name] for name in ASKED))
        fits = [rack for rack in room if room[rack] >= gang.min_member]
        best = min(fits, key=lambda rack: (room[rack], rack), default="")
        placed = found.get(gang.name, {})
        racks = {rack_of[node] for node in placed.values()}
        if racks != ({best} if best else set()) or (best and len(placed) != gang.min_member):
            sys.exit(f"{gang.name}: {len(placed)} pods in {sorted(racks)}, not all in {best!r}")
        for node in placed.values():
            for name, amount in ASKED.items():
                free[node][name] -= amount


def main() -> None:
    parser = argparse.ArgumentParser(description="decide gangs that must lie in one rack")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--racks", type=int, default=50)
    parser.add_argument("--gangs", type=int, default=1)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    nodes = make_nodes(options.nodes, options.racks)
    times = []
    for seed in range(options.repeat):
        load = make_load(nodes, random.Random(seed))
        gangs, pods = make_gangs(options.gangs, options.size)
        found, seconds = decide(nodes, load, gangs, pods, seed)
        check(nodes, load, gangs, found)
        times.append(seconds * 1e3)
        text = f"seed {seed}: {len(found)} of {len(gangs)} gangs placed in {seconds * 1e3:.1f} ms"
        print(text, file=sys.stderr)
    print(
        json.dumps(
            {
                "nodes": options.nodes,
                "racks": options.racks,
                "gangs": options.gangs,
                "size": options.size,
                "cpu_ms_median": round(statistics.median(times), 1),
                "cpu_ms_max": round(max(times), 1),
                "placements_as_the_plain_loop": True,
                "python": platform.python_version(),
            }
        )
    )


if __name__ == "__main__":
    main()
