"""What a look of the rebalancing loop costs: whether a few moves let a gang start, and which.

    python benchmarks/rebalancing_round.py [--nodes N] [--repeat K]

Nodes have 8 GPUs, and four alike gangs wait. Timed, in CPU, without reading the cluster:

- `found`: seven pods of one GPU on each node, and two on two of them; a gang wants two whole nodes.
  It takes four moves, and no fewer.
- `in_vain`: two pods of three GPUs on each node; gangs want four pods of four GPUs. Each node could
  be freed by one move, and no pod has anywhere to go: all is tried.

If other than four moves, or any in vain, are found, the run fails. The last line is JSON.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Iterator

import msgspec

from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.rebalancing import RebalanceBounds
from alnair.model.workload import Gang, GpuPart, Pod
from alnair.scheduler.advice.rebalance_round import rebalance_round
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from lib.whole_gpus import MEMORY_MIB, make_node, spec

NOW = 1e6
GANGS = 4
MOVES = 4


def tenants(node: Node, pods: int, gpus: int) -> Iterator[Pod]:
    """Pods that may be moved, on the first GPUs of a node."""
    for number in range(pods):
        mine = node.gpus[number * gpus : (number + 1) * gpus]
        parts = tuple(GpuPart(one.uuid, one.index, MEMORY_MIB, 100, whole=True) for one in mine)
        name = f"{node.name}-{number}"
        pod = Pod(name, "default", name, spec(gpus), names.SCHEDULER, 0.0, node=node.name)
        yield msgspec.structs.replace(pod, owned=True, assignment=(("main", parts),))


def make_engine(nodes: int, pods: int, gpus: int, few: int, members: int, each: int) -> Engine:
    """An engine that follows: so many pods of so many GPUs on each node, and gangs that wait."""
    made = [make_node(number) for number in range(nodes)]
    happened: list[events.Event] = [events.NodeChanged(node) for node in made]
    for number, node in enumerate(made):
        count = 2 if number < few else pods
        happened += [events.PodChanged(pod) for pod in tenants(node, count, gpus)]
    for number in range(GANGS):
        group = f"gang-{number}"
        happened.append(events.GangChanged(Gang("default", group, members, 0.0)))
        for member in range(members):
            name = f"{group}-{member}"
            pod = Pod(name, "default", name, spec(each), names.SCHEDULER, 0.0, group=group)
            happened.append(events.PodChanged(pod))
    engine = Engine(profiles())
    engine.follow(happened, NOW)
    return engine


def look(engine: Engine, moves: int) -> float:
    """Return the seconds of one look, which must find so many moves."""
    bounds = RebalanceBounds(every=600, moves=MOVES, gain=1.0)
    begin = time.process_time()
    found = rebalance_round(engine.view, bounds, (), NOW)
    seconds = time.process_time() - begin
    if (len(found.plan.moves) if found.plan else 0) != moves:
        sys.exit(f"not {moves} moves: {found}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="look for moves that let a gang start")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {"found": [], "in_vain": []}
    for _ in range(options.repeat):
        engine = make_engine(options.nodes, pods=7, gpus=1, few=2, members=2, each=8)
        seconds["found"].append(look(engine, 4))
        engine = make_engine(options.nodes, pods=2, gpus=3, few=0, members=4, each=4)
        seconds["in_vain"].append(look(engine, 0))
        print({kind: f"{every[-1]:.3f} s" for kind, every in seconds.items()}, file=sys.stderr)
    print(
        json.dumps(
            {
                "nodes": options.nodes,
                "gangs": GANGS,
                **{f"{kind}_cpu_s": round(statistics.median(s), 3) for kind, s in seconds.items()},
                "fewest_moves": True,
                "python": platform.python_version(),
            }
        )
    )


if __name__ == "__main__":
    main()
