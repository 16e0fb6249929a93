"""What UtilSched and Interference bring: jobs that share GPUs, with both terms on and off.

Method: `alnair simulate cluster` on traces whose jobs have measured utilisations (49 training runs
on a P100, drawn by a seed); pods that share a GPU ask for its memory alone, as is usual without an
enforced share of compute, so that neighbours are in one another's way. How fast they run then is
the simulator's model: measured pairs where both kinds were measured, otherwise a GPU's time shared
in proportion. Agents report loads and pods say what they expect to use, in every case, so that the
cases differ in the decisions alone:

- `alnair-in-order`: nodes are filled in order, without both terms;
- `utilsched-without`: the profile `utilsched` with both plugins disabled;
- `utilsched`: the profile as it ships: pods join others beyond 70 % of a GPU's time last;
- `utilsched-limit`: no pod joins others beyond 70 % (`maxUtilization: 70`), as it shipped once;
- `utilsched-scores`: the terms alone choose (`targetUtilization: 100`), and nothing is refused;
- `utilsched-pairs`: `utilsched`, and the scheduler knows the pairs that the simulator knows;
- `opportunity-price`: `alnair-low-fragmentation`, which prices GPUs beyond 70 % of their time;
- `opportunity-off`: the same without that price (`targetUtilization: 100`), as `alnair-scheduler`;
- `opportunity-limit`: the same with a limit of 70 % instead (`maxUtilization: 70`).

The trace `kinds` is the synthetic one whose jobs are those that were measured in pairs (Gavel's 26
on a V100), drawn by a seed; all use half of a GPU's time, so that its time tells nothing of them.

The figures are means over the seeds, of the time in which jobs come; waits and times to completion
count jobs that are not finished with the time so far.
"""

import argparse
import json
import random
import sys
import time

import msgspec

from alnair.configuration.profile_assembly import assemble
from alnair.configuration.scheduler_file import (
    Configuration,
    DisabledPlugin,
    PluginConfig,
    PluginSet,
    ProfileConfiguration,
)
from alnair.history.metrics import compute
from alnair.history.metrics.result import Metrics
from alnair.model import names
from alnair.sim.inputs import InputOptions, Mix, load
from alnair.sim.interference import DEFAULT_MODEL, measured, shipped
from alnair.sim.jobs import Scenario
from alnair.sim.simulation import Simulation, SimulationOptions

BOTH = ("UtilSched", "Interference")
WITHOUT, PAIRS = "utilsched-without", "utilsched-pairs"
#: Arguments of UtilSched in these cases.
UTIL_SCHED: dict[str, dict[str, float]] = {
    "utilsched-limit": {"maxUtilization": 70},
    "utilsched-scores": {"targetUtilization": 100},
}
PRICE, OFF, LIMIT = "opportunity-price", "opportunity-off", "opportunity-limit"
#: Arguments of OpportunityCost in these cases.
OPPORTUNITY: dict[str, dict[str, float]] = {
    PRICE: {},
    OFF: {"targetUtilization": 100},
    LIMIT: {"targetUtilization": 100, "maxUtilization": 70},
}
CONFIGURATION = Configuration(
    profiles=(
        ProfileConfiguration(scheduler_name=names.IN_ORDER),
        ProfileConfiguration(scheduler_name=names.UTILSCHED),
        ProfileConfiguration(
            scheduler_name=WITHOUT,
            like=names.UTILSCHED,
            plugins=PluginSet(disabled=tuple(map(DisabledPlugin, BOTH))),
        ),
        *(
            ProfileConfiguration(
                scheduler_name=name,
                like=names.UTILSCHED,
                plugin_config=(PluginConfig("UtilSched", arguments),),
            )
            for name, arguments in UTIL_SCHED.items()
        ),
        ProfileConfiguration(
            scheduler_name=PAIRS,
            like=names.UTILSCHED,
            plugin_config=(
                PluginConfig("Interference", {"pairs": msgspec.to_builtins(shipped())}),
            ),
        ),
        *(
            ProfileConfiguration(
                scheduler_name=name,
                like=names.LOW_FRAGMENTATION,
                plugin_config=(PluginConfig("OpportunityCost", arguments),),
            )
            for name, arguments in OPPORTUNITY.items()
        ),
    )
)
CASES = (names.IN_ORDER, WITHOUT, names.UTILSCHED, *UTIL_SCHED, PAIRS, *OPPORTUNITY)
DAY = 86400.0
#: Most of openb's jobs come from day 115 on; 35 GPUs are busy on average then.
TRACES = {
    "openb": InputOptions(
        nodes="3x8xV100M16:cpu=128,memory=768Gi",
        since=118 * DAY,
        until=132 * DAY,
        shares="memory",
        utilisation="measured",
    ),
    "synthetic": InputOptions(
        nodes="5x8xV100M16",
        mix=Mix(
            jobs=900,
            per_hour=75,
            gpus=((0.25, 45), (0.5, 35), (1, 18), (4, 2)),
            median=1800,
            spread=1.2,
            users=10,
        ),
        shares="memory",
        utilisation="measured",
    ),
}


TRACES["kinds"] = msgspec.structs.replace(
    TRACES["synthetic"], nodes=f"5x8x{DEFAULT_MODEL}", utilisation=""
)


#: When it is measured, seconds from the begin: as long as jobs come.
ENDS = {"openb": 14 * DAY, "synthetic": 12 * 3600.0, "kinds": 12 * 3600.0}


def simulate(trace: str, case: str, seed: int) -> dict[str, float | int | None]:
    inputs = msgspec.structs.replace(TRACES[trace], seed=seed)
    found = load(["synthetic" if trace == "kinds" else trace], inputs)
    scenario = found.scenario if trace != "kinds" else with_kinds(found.scenario, seed)
    simulation = Simulation(
        scenario,
        tuple(assemble(CONFIGURATION, "interference").profiles()),
        SimulationOptions(seed=seed, profile=case, loads=True, until=ENDS[trace]),
        interference=measured(),
    )
    began = time.perf_counter()
    metrics = compute(simulation.run())
    return figures(metrics) | {"wall_s": round(time.perf_counter() - began, 1)}


def with_kinds(scenario: Scenario, seed: int) -> Scenario:
    """Make each job one of those that were measured in pairs."""
    kinds = shipped()[DEFAULT_MODEL].kinds
    jobs = [
        msgspec.structs.replace(
            job, kind=random.Random(f"{seed}/{job.name}").choice(kinds), util=50.0
        )
        for job in scenario.jobs
    ]
    return msgspec.structs.replace(scenario, jobs=tuple(jobs))


def figures(metrics: Metrics) -> dict[str, float | int | None]:
    return {
        "finished": metrics.jobs.finished,
        "used_pct": metrics.gpu.used_pct,
        "allocated_pct": metrics.gpu.allocated_pct,
        "pair_rate": metrics.sharing.rate_mean,
        "pair_throughput": metrics.sharing.throughput_mean,
        "shared_hours": metrics.sharing.seconds / 3600,
        "wait_mean_s": metrics.wait["all"].at_least.mean,
        "jct_mean_s": metrics.completion["all"].at_least.mean,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 1 on")
    parser.add_argument("--trace", action="append", choices=sorted(TRACES), help="default: all")
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    options = parser.parse_args()
    result: dict[str, dict[str, dict[str, float | None]]] = {}
    for trace in options.trace or TRACES:
        for case in options.case or CASES:
            runs = [simulate(trace, case, seed) for seed in range(1, options.seeds + 1)]
            means = result.setdefault(trace, {})[case] = {
                name: mean([run[name] for run in runs]) for name in runs[0]
            }
            print(f"{trace:10}", f"{case:18}", means, file=sys.stderr, flush=True)
    print(json.dumps({"benchmark": "interference", "seeds": options.seeds, "means": result}))


def mean(values: list[float | int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None


if __name__ == "__main__":
    main()
