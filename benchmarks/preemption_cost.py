"""What preemption costs: GPU hours of work that victims lose, and how long preemptors wait.

    python benchmarks/preemption_cost.py [--seeds 1,2,3] [--against DIR]

Method: `alnair.sim.simulation`, the production engine on a virtual clock, 32 nodes of 8 GPUs, four
namespaces, three of them with an ElasticQuota, three priorities; Poisson arrivals that ask for more
GPUs than there are; run times are log-normal, at most a day. What is evicted starts anew: all its
work is lost. Elastic gangs lose nothing.

- `teams`: one namespace borrows for small pods (1 or 2 GPUs, and slices), two teams with a large
  `min` run gangs of 2 to 4 nodes, elastic gangs, and lone pods of 1 to 8 GPUs;
- `alike`: every namespace runs the same mixture, and one asks for more than its own.

`--against DIR` runs the same with another working tree of Alnair beside it, seed by seed. The last
line is JSON: GPU hours that preempted pods lost, evictions, and mean waits in seconds from
submission to start, of jobs above the lowest priority (those that may preempt) and of all.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from alnair.history.history import History
from alnair.history.metrics import compute
from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.model.nodes import Gpu, Node
from alnair.model.quota import Quota
from alnair.model.workload import Gang, Pod, PodSpec
from alnair.scheduler.profiles import profiles
from alnair.sim.jobs import Elastic, Job, Scenario
from alnair.sim.simulation import Simulation, SimulationOptions
from lib import machine

NODES, GPUS, MEMORY_MIB = 32, 8, 81920
HOUR = 3600.0
#: Priorities and their parts.
PRIORITIES = ((0, 0.6), (5, 0.25), (10, 0.15))
#: Kinds, the median of their run times in hours, and their parts of a namespace's jobs.
MIXED = (("lone", 2.0, 0.6), ("slice", 2.0, 0.2), ("gang", 4.0, 0.12), ("elastic", 4.0, 0.08))
SMALL = (("small", 2.0, 0.8), ("slice", 2.0, 0.2))
TEAM = (("lone", 2.0, 0.6), ("gang", 4.0, 0.25), ("elastic", 4.0, 0.15))
#: Per mix: namespace, its quota's `min` in GPUs (None = no quota), its kinds, its part of the jobs.
MIXES: dict[str, tuple[tuple[str, int | None, Any, float], ...]] = {
    "teams": (
        ("sweeps", 48, SMALL, 0.85),
        ("vision", 104, TEAM, 0.065),
        ("speech", 104, TEAM, 0.065),
        ("lab", None, SMALL, 0.02),
    ),
    "alike": (
        ("vision", 96, MIXED, 0.45),
        ("speech", 80, MIXED, 0.25),
        ("search", 80, MIXED, 0.2),
        ("lab", None, MIXED, 0.1),
    ),
}
#: GPUs of a lone pod.
SIZES = {"lone": (1, 1, 1, 1, 2, 2, 4, 8), "small": (1, 1, 1, 2)}


def nodes() -> tuple[Node, ...]:
    return tuple(node(f"node-{i:02}") for i in range(NODES))


def node(name: str) -> Node:
    gpus = tuple(Gpu(f"GPU-{name}-{i}", i, "A100", MEMORY_MIB, None, ()) for i in range(GPUS))
    allocatable = {
        "cpu": 128_000,
        "memory": 2**40,
        "pods": 110,
        names.GPU: GPUS,
        names.VGPU_MEMORY: GPUS * MEMORY_MIB,
        names.VGPU_COMPUTE: 100 * GPUS,
        names.VGPU: names.VGPU_SLOTS * GPUS,
    }
    return Node(name, allocatable, {"kubernetes.io/hostname": name}, gpus=gpus)


def pod_spec(whole: int, slice_mib: int = 0) -> PodSpec:
    asked = {names.GPU: whole, names.VGPU_MEMORY: slice_mib}
    demand = gpu_demand([ContainerGpus("main", {k: v for k, v in asked.items() if v})], {})
    requests = {
        "cpu": 1000,
        "pods": 1,
        names.GPU: whole,
        names.VGPU_MEMORY: slice_mib,
        names.VGPU: int(slice_mib > 0),
    }
    held = tuple(sorted((name, amount) for name, amount in requests.items() if amount))
    return PodSpec(requests=held, scored_cpu=1000, scored_memory=2**28, gpu=demand)


def chosen(draw: random.Random, parts: tuple[tuple[Any, ...], ...]) -> Any:
    return draw.choices([part[0] for part in parts], [part[-1] for part in parts])[0]


def job(number: int, submitted: float, mix: str, draw: random.Random) -> Job:
    namespace, priority = chosen(draw, MIXES[mix]), chosen(draw, PRIORITIES)
    kinds = next(kinds for name, _, kinds, _ in MIXES[mix] if name == namespace)
    kind = chosen(draw, kinds)
    median = next(hours for name, hours, _ in kinds if name == kind) * HOUR
    duration = min(24 * HOUR, max(0.1 * HOUR, draw.lognormvariate(math.log(median), 0.8)))
    spec, count, least = pod_spec(draw.choice(SIZES.get(kind, (1,)))), 1, 1
    if kind == "slice":
        spec = pod_spec(0, draw.choice((1, 2, 3)) * MEMORY_MIB // 4)
    elif kind in ("gang", "elastic"):
        spec, count = pod_spec(draw.choice((4, 8) if kind == "gang" else (1, 2))), 2
        count = least = draw.randrange(2, 5)
        if kind == "elastic":
            count = 2 * least
    name = f"job-{number}"
    group = name if count > 1 else ""
    pods = tuple(
        Pod("", namespace, f"{name}-{i}", spec, names.SCHEDULER, 0.0, priority, group=group)
        for i in range(count)
    )
    gang = Gang(namespace, name, least, 0.0) if group else None
    elastic = Elastic(least=least, most=count) if kind == "elastic" else None
    return Job(
        name=name,
        submitted=submitted,
        pods=pods,
        user=namespace,
        gang=gang,
        duration=duration,
        elastic=elastic,
    )


def scenario(seed: int, jobs: int, load: float, mix: str) -> Scenario:
    """Return jobs that ask for so much of the cluster's GPUs over the time in which they arrive."""
    draw = random.Random(f"{seed}/preemption")
    made = [job(i, 0.0, mix, random.Random(f"{seed}/{i}")) for i in range(jobs)]
    offered = sum(gpus(j) * j.duration for j in made)
    rate = jobs * load * NODES * GPUS / offered
    now, arriving = 0.0, []
    for number in range(jobs):
        now += draw.expovariate(rate)
        arriving.append(job(number, now, mix, random.Random(f"{seed}/{number}")))
    quotas = tuple(
        ("ElasticQuota", namespace, "team", Quota("team", {names.GPU: least}))
        for namespace, least, *_ in MIXES[mix]
        if least is not None
    )
    return Scenario(nodes=nodes(), jobs=tuple(arriving), objects=quotas)


def gpus(of: Job) -> float:
    demands = [pod.spec.gpu for pod in of.pods]
    return sum(d.whole + d.memory_mib / MEMORY_MIB for d in demands if d is not None)


def simulate(seed: int, jobs: int, load: float, mix: str) -> dict[str, Any]:
    told = scenario(seed, jobs, load, mix)
    begun = time.perf_counter()
    simulation = Simulation(told, profiles(), SimulationOptions(seed=seed))
    history = simulation.run()
    found = compute(history)
    above = {j.name for j in told.jobs if j.pods[0].priority > PRIORITIES[0][0]}
    return {
        "lost_gpu_hours": found.disruption.wasted_gpu_hours["preempted"],
        "evictions": found.disruption.ended["preempted"],
        "wait_above_s": waited(history, above),
        "wait_all_s": waited(history, set(history.jobs)),
        "makespan_h": found.makespan / HOUR,
        "unfinished": simulation.progress.jobs - simulation.progress.finished,
        "wall_s": time.perf_counter() - begun,
    }


def waited(history: History, of: set[str]) -> float:
    """Return the mean wait of jobs until as many of their pods as they need had begun, seconds."""
    waits = []
    for found in history.jobs.values():
        if found.name not in of:
            continue
        pods = [history.pods[uid] for uid in found.pods]
        begins = sorted(pod.stays[0].begin for pod in pods if pod.stays)
        least = found.least or 1
        end = begins[least - 1] if len(begins) >= least else history.end
        waits.append(end - found.submitted)
    return statistics.fmean(waits)


def elsewhere(directory: Path, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run one seed with another working tree."""
    command = [sys.executable, __file__, "--seeds", str(seed), "--jobs", str(options.jobs)]
    command += ["--load", str(options.load), "--mix", options.mix]
    paths = f"{directory / 'src'}:{Path(__file__).parent}"
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["runs"][0]["here"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--jobs", type=int, default=800)
    parser.add_argument("--mix", choices=sorted(MIXES), default="teams")
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--against", type=Path, help="another working tree of Alnair")
    options = parser.parse_args()
    runs = []
    for seed in map(int, options.seeds.split(",")):
        run: dict[str, Any] = {"seed": seed}
        if options.against:
            run["against"] = elsewhere(options.against, seed, options)
        run["here"] = simulate(seed, options.jobs, options.load, options.mix)
        runs.append(run)
        for which in ("against", "here"):
            if which in run:
                shown = {k: round(v, 1) for k, v in run[which].items()}
                print(f"seed {seed} {which}: {shown}", flush=True)
    result: dict[str, Any] = {"benchmark": "preemption_cost", "jobs": options.jobs}
    result |= {"mix": options.mix, "load": options.load, "nodes": NODES, "gpus": GPUS}
    if options.against:
        for key in ("lost_gpu_hours", "evictions", "wait_above_s", "wait_all_s"):
            before = sum(run["against"][key] for run in runs)
            result[f"{key}_change_pct"] = 100.0 * (sum(r["here"][key] for r in runs) / before - 1)
    print(json.dumps({**result, "runs": runs, "machine": machine.describe()}))


if __name__ == "__main__":
    main()
