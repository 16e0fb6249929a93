"""How long it takes to say how many workers of an elastic job would start now, and where.

    python benchmarks/worker_room.py [--nodes N] [--jobs J] [--repeat K]

Nodes have 8 GPUs, filled to different degrees. Timed, in CPU: one question of a job that asks for
up to 64 workers, in a room of its own (`first`: its class is compiled for all nodes; then `next`),
and a room in which J jobs get one worker after another until nothing is free (`worker`, each).

In the same run a plain sum over nodes says how many workers fit. If the room found another number,
the run fails. The last line is JSON.
"""

import argparse
import json
import platform
import random
import statistics
import sys
import time

from alnair.model import names
from alnair.model.workload import Gang, Pod
from alnair.scheduler.advice.worker_room import WorkerTemplate, worker_room
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from lib.whole_gpus import GPUS, make_node, spec

MOST = 64


def make_engine(nodes: int, chance: random.Random) -> tuple[Engine, int]:
    """An engine that follows, and the GPUs that are free."""
    engine = Engine(profiles())
    made = [make_node(number) for number in range(nodes)]
    held = [chance.choice((0, 4, 6, 7, 8, 8, 8, 8)) for _ in made]
    load = [
        Pod(f"u{i}", "default", f"runs-{i}", spec(count), "other", 0.0, node=node.name)
        for i, (node, count) in enumerate(zip(made, held, strict=True))
        if count
    ]
    engine.follow([events.NodeChanged(node) for node in made], 0.0)
    engine.follow([events.PodChanged(pod) for pod in load], 0.0)
    return engine, nodes * GPUS - sum(held)


def template(number: int) -> WorkerTemplate:
    pod = Pod("", "default", "w", spec(1), names.SCHEDULER, 0.0)
    return WorkerTemplate(Gang("default", f"job-{number}", 1, 0.0), pod)


def ask(engine: Engine, free: int) -> float:
    """Return the seconds of one question, in a room of its own."""
    begin = time.process_time()
    with worker_room(engine.view, {"job": template(0)}, 0.0) as room:
        found = room.startable("job", MOST)
    seconds = time.process_time() - begin
    if found.workers != min(MOST, free) or sum(n for _, n in found.nodes) != found.workers:
        sys.exit(f"{found.workers} workers, and {free} GPUs are free")
    return seconds


def fill(engine: Engine, jobs: int, free: int) -> float:
    """Return the seconds per worker of a room that is filled with workers of all jobs in turn."""
    begin = time.process_time()
    given = 0
    with worker_room(engine.view, {str(n): template(n) for n in range(jobs)}, 0.0) as room:
        while room.place(str(given % jobs), 1):
            given += 1
    seconds = time.process_time() - begin
    if given != free:
        sys.exit(f"{given} workers were placed, and {free} GPUs are free")
    return seconds / max(given, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="say how many workers would start now")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    first, after, each = [], [], []
    for seed in range(options.repeat):
        engine, free = make_engine(options.nodes, random.Random(seed))
        first.append(ask(engine, free) * 1e3)
        after += [ask(engine, free) * 1e3 for _ in range(5)]
        each.append(fill(engine, options.jobs, free) * 1e6)
        print(f"seed {seed}: {free} GPUs free, {after[-1]:.1f} ms a question", file=sys.stderr)
    print(
        json.dumps(
            {
                "nodes": options.nodes,
                "jobs": options.jobs,
                "workers_asked": MOST,
                "first_cpu_ms": round(statistics.median(first), 1),
                "next_cpu_ms": round(statistics.median(after), 1),
                "worker_cpu_us": round(statistics.median(each)),
                "counts_as_the_plain_sum": True,
                "python": platform.python_version(),
            }
        )
    )


if __name__ == "__main__":
    main()
