"""What a queue costs in which nearly all jobs differ in size, and that decisions stay the same.

    python benchmarks/queue_sizes.py [--load shares|mixed] [--jobs N] [--nodes N] [--seed N]

Method: `alnair.sim.simulation`, the production engine on a virtual clock, on the loads of
`lib/size_loads.py`, on one core. CPU time is that of the simulation alone: neither the start of
Python nor making the load. The digest is taken over all decisions and their times, and `decided`
over the same without what owners of waiting pods are told: a change that is only meant to be faster
leaves that as it is. `--profile FILE` has cProfile write its figures there;
then times mean little.
"""

import argparse
import cProfile
import hashlib
import json
import sys
import time
from collections.abc import Sequence

import msgspec

from alnair.model.action import Action, Report
from alnair.scheduler.engine.events import Event
from alnair.scheduler.profiles import profiles
from alnair.sim.simulation import Simulation, SimulationOptions
from lib import machine
from lib.size_loads import LOADS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--load", choices=tuple(LOADS), default="shares")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", help="where cProfile writes to")
    options = parser.parse_args()
    if min(options.jobs, options.nodes) < 1:
        parser.error("--jobs and --nodes must be at least 1")
    told = LOADS[options.load](options.jobs, options.nodes, options.seed)
    simulation = Simulation(told, profiles(), SimulationOptions(seed=options.seed))
    decided = noted(simulation)
    profiler = cProfile.Profile() if options.profile else None
    wall, cpu = time.perf_counter(), time.process_time()
    if profiler:
        profiler.enable()
    while simulation.advance(1000):
        told_so_far = simulation.progress
        print(f"{told_so_far.finished} of {options.jobs} jobs done", file=sys.stderr, flush=True)
    if profiler:
        profiler.disable()
        profiler.dump_stats(options.profile)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found = {
        "benchmark": "queue_sizes",
        "load": options.load,
        "jobs": options.jobs,
        "nodes": options.nodes,
        "seed": options.seed,
        "finished": simulation.progress.finished,
        "simulated_s": round(simulation.time),
        "wall_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "digest": simulation.digest,
        "decided": decided.hexdigest(),
        "machine": machine.describe(),
    }
    print(json.dumps(found))


def noted(simulation: Simulation) -> "hashlib.blake2b":
    """Return the digest of what the simulation will have decided, but for reports to owners."""
    found = hashlib.blake2b(digest_size=16)
    step = simulation.engine.step

    def noting(batch: Sequence[Event], now: float) -> list[Action]:
        actions = step(batch, now)
        for action in actions:
            if not isinstance(action, Report):
                found.update(msgspec.json.encode((now, type(action).__name__, action)))
        return actions

    simulation.engine.step = noting  # type: ignore[assignment, method-assign]
    return found


if __name__ == "__main__":
    main()
