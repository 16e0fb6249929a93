"""How full our scheduler fills the GPUs: the openb trace at 130 % demand, on a real API server.

Method: a local cluster of its own with the trace's 1,213 nodes; the default pod list inflated to
130 % of the GPUs, created one by one in the published order of seed 42 (`default-42.pods`), all of
it with real objects; the pods that find no node stay pending, and as nothing ever leaves, that
equals the published protocol's drop. Then the GPUs that are not allocated are counted from the
objects read back, and the independent checker proves the placement.

What the published figures rest on and we cannot have: ties between equally good nodes go to the
first node in a published order there; our scheduler breaks ties by a seeded permutation of its own.
The order of nodes is worth about 0.1 points (the spread over ten seeds). FirstFit has no score and
is computed here anew as a control of the data: it has to come out as published.

Sources of the known figures: Weng et al., USENIX ATC'23, and its simulator's expected results
(BestFit, FGD, mean of seeds 42 to 51; the rows of seed 42 by a re-implementation that equals all
850 published results); FirstFit is ours, by the same re-implementation.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from alnair.checker.objects.api_names import SCHEDULERS
from alnair.cli.trace_replay import carry_out
from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.live import checking
from alnair.live.replay.session import Settings
from alnair.local.controlplane import LocalCluster
from alnair.traces import openb_files
from alnair.traces.arrivals import Arrival, capacity, in_given_order
from alnair.traces.openb_files import Trace

#: Unallocated GPU, percent of capacity, when 130 % have arrived: seed 42, and mean of ten seeds.
KNOWN = {
    "firstfit": {"seed_42": 5.50, "mean": 5.46},
    "bestfit": {"seed_42": 6.87, "mean": 6.92},
    "fgd": {"seed_42": 4.71, "mean": 4.61},
}
ORDER = "default-42"


def first_fit(trace: Trace, arrivals: list[Arrival]) -> float:
    """Return the unallocated percentage of FirstFit: first node in order, tightest GPU."""
    by_name = {node.name: node for node in trace.nodes}
    nodes = [by_name[name] for name in openb_files.names(f"{ORDER}.nodes")]
    cpu = [node.cpu_milli for node in nodes]
    memory = [node.memory_mib for node in nodes]
    gpus = [[1000] * node.gpus for node in nodes]
    allocated = 0
    for pod in (arrival.pod for arrival in arrivals):
        for i, node in enumerate(nodes):
            if cpu[i] < pod.cpu_milli or memory[i] < pod.memory_mib:
                continue
            if pod.models and node.model not in pod.models:
                continue
            fit = sorted((left, g) for g, left in enumerate(gpus[i]) if left >= pod.gpu_milli)
            if len(fit) < pod.gpus:
                continue
            for _, g in fit[: pod.gpus]:
                gpus[i][g] -= pod.gpu_milli
            cpu[i] -= pod.cpu_milli
            memory[i] -= pod.memory_mib
            allocated += pod.demand
            break
    return round(100 - 100 * allocated / capacity(trace.nodes), 2)


async def run(cluster: LocalCluster, profile: str) -> dict[str, object]:
    await cluster.up()
    trace = openb_files.load()
    arrivals = in_given_order(trace.pods, openb_files.names(f"{ORDER}.pods"), ORDER)
    control = first_fit(trace, arrivals)
    connection = client_config.load(cluster.kubeconfig())
    begun = time.monotonic()
    settings = Settings(profile=profile, in_flight=1)
    async with Client(connection) as client:
        outcome = await carry_out(client, trace, arrivals, settings)
    if outcome.problem or outcome.interrupted:
        sys.exit(f"the replay did not come to its end: {outcome.problem or 'interrupted'}")
    seconds = time.monotonic() - begun
    async with Client(connection) as client:
        finding = await checking.check(client, SCHEDULERS, frozenset(), len(arrivals))
    for violation in finding.violations:
        print(violation, file=sys.stderr)
    report = outcome.report
    assert report.gpu_allocated_pct is not None, "the cluster has GPUs"
    return {
        "trace": "openb default",
        "order": ORDER,
        "profile": profile,
        "unallocated_pct": round(100 - report.gpu_allocated_pct, 2),
        "first_fit_here_pct": control,
        "known_pct": KNOWN,
        "checker_ok": not finding.violations,
        **msgspec.structs.asdict(report),
        "wall_s": round(seconds, 1),
    }


def machine() -> str:
    cores = f"{len(os.sched_getaffinity(0))} cores"
    return f"{platform.machine()}, {cores}, {platform.system()}, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="alnair-scheduler", help="schedulerName of the pods")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="alnair-bench-") as folder:
        cluster = LocalCluster("openb130", root=Path(folder), scheduler=True)
        cluster.prepare()
        try:
            result = asyncio.run(run(cluster, arguments.profile))
        finally:
            asyncio.run(cluster.down())
    print(f"unallocated GPU at 130 % arrived: {result['unallocated_pct']} % ({result['profile']})")
    for name, known in KNOWN.items():
        print(
            f"  {name:9} {known['seed_42']} % (same order), {known['mean']} % (mean of 10 orders)"
        )
    print("Ties between nodes: ours by a seeded permutation, theirs by a published node order.")
    print(
        json.dumps(
            {
                **result,
                "machine": machine(),
                "method": "real API server, all created one by one in order, counted from objects",
            }
        )
    )
    if not result["checker_ok"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
