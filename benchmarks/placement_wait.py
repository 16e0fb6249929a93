"""What a placement policy does to waiting: openb's pods arrive, run and leave on a busy cluster.

Method: `alnair.sim.simulation`, the production engine on a virtual clock. Every twelfth GPU node of
the trace; its pods in a shuffled order with Poisson arrivals, so many that GPUs are asked for at
`--loads` times what there is; run times as in the trace, at most six hours. The balanced profile
with OpportunityCost (`with`, that is alnair-low-fragmentation) against the same without it: same
jobs, same times, same seed. Waits are means over all jobs, from submission to start, by the size of
the job.
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import msgspec

from alnair.history.metrics import compute
from alnair.model import names
from alnair.scheduler.profiles import profiles
from alnair.sim.inputs import InputOptions, load
from alnair.sim.jobs import Job, Scenario
from alnair.sim.simulation import Simulation, SimulationOptions
from lib import machine

LONGEST = 6 * 3600.0
SIZES = ("all", "cpu", "shared", "1", "2-4", "5-8")


def scenario(load_factor: float, seed: int, times: int) -> Scenario:
    """Return openb's pods, so many times over, on a twelfth of its nodes, at a load."""
    read = load((), InputOptions(default_duration=3600.0, seed=seed)).scenario
    nodes = read.nodes[::12]
    draw = random.Random(f"{seed}/wait")
    jobs = [again(job, i) for i in range(times) for job in read.jobs]
    draw.shuffle(jobs)
    jobs = [msgspec.structs.replace(j, duration=min(j.duration, LONGEST)) for j in jobs]
    offered = sum(_gpus(job) * job.duration for job in jobs)
    gpus = sum(len(node.gpus) for node in nodes)
    rate = len(jobs) * load_factor * gpus / offered
    now, arriving = 0.0, []
    for job in jobs:
        now += draw.expovariate(rate)
        arriving.append(msgspec.structs.replace(job, submitted=now))
    return Scenario(nodes=nodes, jobs=tuple(arriving), begin=read.begin)


def again(job: Job, number: int) -> Job:
    """Return a job once more, under a name of its own."""
    if not number:
        return job
    pods = [msgspec.structs.replace(p, name=f"{p.name}-{number}") for p in job.pods]
    return msgspec.structs.replace(job, name=f"{job.name}-{number}", pods=tuple(pods))


def _gpus(job: Job) -> float:
    total = 0.0
    for pod in job.pods:
        if demand := pod.spec.gpu:
            total += demand.whole + demand.compute / 100
    return total


def simulate(load_factor: float, seed: int, times: int, *, with_plugin: bool) -> dict[str, Any]:
    told = scenario(load_factor, seed, times)
    begun = time.perf_counter()
    profile = names.LOW_FRAGMENTATION if with_plugin else names.SCHEDULER
    simulation = Simulation(told, profiles(), SimulationOptions(seed=seed, profile=profile))
    history = simulation.run()
    found = compute(history)
    waits = {size: found.wait[size].at_least for size in SIZES if size in found.wait}
    return {
        "load": load_factor,
        "seed": seed,
        "policy": "with" if with_plugin else "without",
        "wait_mean_s": waits["all"].mean,
        "wait_p99_s": waits["all"].p99,
        "waits_mean_s": {size: wait.mean for size, wait in waits.items()},
        "gpu_allocated_pct": found.gpu.allocated_pct,
        "f_pct": found.fragmentation.f_pct,
        "makespan_s": found.makespan,
        "jobs_per_second": len(told.jobs) / (time.perf_counter() - begun),
        "digest": simulation.digest,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loads", default="0.9")
    parser.add_argument("--seeds", default="1,2,3,4")
    parser.add_argument("--times", type=int, default=2, help="the list so many times over")
    parser.add_argument("--out", type=Path, help="where the result goes too")
    options = parser.parse_args()
    runs = []
    for load_factor in map(float, options.loads.split(",")):
        for seed in map(int, options.seeds.split(",")):
            for with_plugin in (True, False):
                run = simulate(load_factor, seed, options.times, with_plugin=with_plugin)
                runs.append(run)
                print({k: round(v, 2) if isinstance(v, float) else v for k, v in run.items()})
    result = json.dumps(
        {"benchmark": "placement_wait", "runs": runs, "machine": machine.describe()}
    )
    if options.out:
        options.out.write_text(result)
    print(result)


if __name__ == "__main__":
    main()
