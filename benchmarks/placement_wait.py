"""What a placement policy does to waiting: jobs arrive, run and leave on a busy cluster.

Method: `alnair.sim.simulation`, the production engine on a virtual clock. The workloads of
`lib/wait_workloads.py` at `--loads` times the GPUs that there are, and no expected run times, so
nothing is reserved for anybody. The balanced profile, which has OpportunityCost (`with`), against
alnair-in-order, which is the same without it (`without`): same jobs, same times, same seed. Waits
are means over all jobs, from submission to start, by the size of the job; GPUs in use are counted
until the last job came, since after it there is nothing to use them for.
"""

import argparse
import bisect
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from alnair.history.metrics import compute
from alnair.model import names
from alnair.scheduler.profiles import profiles
from alnair.sim.simulation import Simulation, SimulationOptions
from lib import machine
from lib.wait_workloads import WORKLOADS, scenario

#: Workload, load, seed, how many times the list, with the plugin.
Task = tuple[str, float, int, int, bool]


def simulate(
    workload: str, load_factor: float, seed: int, times: int, *, with_plugin: bool
) -> dict[str, Any]:
    told = scenario(workload, load_factor, seed, times)
    begun = time.perf_counter()
    profile = names.SCHEDULER if with_plugin else names.IN_ORDER
    simulation = Simulation(told, profiles(), SimulationOptions(seed=seed, profile=profile))
    history = simulation.run()
    found = compute(history)
    waits = {size: wait.at_least for size, wait in found.wait.items()}
    series = found.series
    spans = bisect.bisect_right(series.edges, told.jobs[-1].submitted) - 1
    used = statistics.fmean(series.values["allocated"][: max(spans, 1)])
    return {
        "workload": workload,
        "load": load_factor,
        "seed": seed,
        "times": times,
        "policy": "with" if with_plugin else "without",
        "wait_mean_s": waits["all"].mean,
        "wait_p99_s": waits["all"].p99,
        "waits_mean_s": {size: wait.mean for size, wait in waits.items()},
        "gpu_used_pct": 100 * used / sum(len(node.gpus) for node in told.nodes),
        "gpu_allocated_pct": found.gpu.allocated_pct,
        "f_pct": found.fragmentation.f_pct,
        "makespan_s": found.makespan,
        "jobs_per_second": len(told.jobs) / (time.perf_counter() - begun),
        "digest": simulation.digest,
    }


def one(task: Task) -> dict[str, Any]:
    """Run one task, in a process of its own."""
    workload, load_factor, seed, times, with_plugin = task
    return simulate(workload, load_factor, seed, times, with_plugin=with_plugin)


def carry_out(tasks: Sequence[Task], out: Path | None, workers: int) -> list[dict[str, Any]]:
    """Run what is not in the file yet, show how far it is, and return what was asked for."""
    before = json.loads(out.read_text())["runs"] if out and out.exists() else []
    done: dict[Task, dict[str, Any]] = {_task(run): run for run in before if "workload" in run}
    left = [task for task in tasks if task not in done]
    begun = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(min(workers, max(len(left), 1))) as pool:
        for number, run in enumerate(pool.imap_unordered(one, left), 1):
            done[_task(run)] = run
            if out is not None:
                half = out.with_suffix(".part")  # an interrupt must not leave half a file
                half.write_text(_document(done.values()))
                half.replace(out)
            remaining = (time.monotonic() - begun) / number * (len(left) - number)
            print(
                f"{number}/{len(left)} {run['workload']} load {run['load']:g} seed {run['seed']} "
                f"{run['policy']}: "
                f"mean {run['wait_mean_s']:.1f} s, p99 {run['wait_p99_s']:.0f} s, "
                f"5-8 GPUs {run['waits_mean_s'].get('5-8', 0.0):.0f} s ({remaining:.0f} s left)",
                file=sys.stderr,
                flush=True,
            )
    return [done[task] for task in tasks]


def _task(run: Mapping[str, Any]) -> Task:
    return run["workload"], run["load"], run["seed"], run["times"], run["policy"] == "with"


def _document(runs: Iterable[Mapping[str, Any]]) -> str:
    found = {"benchmark": "placement_wait", "runs": list(runs), "machine": machine.describe()}
    return json.dumps(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--loads", default="0.95")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--times", type=int, default=1, help="the list so many times over")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="results so far, and where they go")
    options = parser.parse_args()
    workloads = options.workloads.split(",")
    if unknown := [name for name in workloads if name not in WORKLOADS]:
        parser.error(f"unknown: {', '.join(unknown)}; workloads are {', '.join(WORKLOADS)}")
    tasks = [
        (workload, load_factor, seed, options.times, with_plugin)
        for workload in workloads
        for load_factor in map(float, options.loads.split(","))
        for seed in map(int, options.seeds.split(","))
        for with_plugin in (True, False)
    ]
    print(_document(carry_out(tasks, options.out, options.workers)))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted; with --out, the same command goes on where this ended", file=sys.stderr)
        sys.exit(130)
