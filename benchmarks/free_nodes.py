"""Free nodes for pods of 8 GPUs, under random arrivals and departures of pods that name only GPUs.

    python benchmarks/free_nodes.py [--full | --in-memory] [--nodes N,N] [--loads L,L] [--seeds S]

Beside our profiles the real kube-scheduler, as its users configure it for GPUs: NodeResourcesFit
with MostAllocated, and with LeastAllocated, by nvidia.com/gpu (weight 5), cpu and memory (1 each);
all else as by default, and all nodes scored. All nodes have 8 GPUs. Pods ask for 1, 2, 4 or 8 of
them (55, 20, 15 and 10 in a hundred) and live 8 steps in the mean, exponentially. In each step pods
come, one after another; each is bound or said to find no node; what is free is counted; those
without a node are deleted, for every scheduler alike, and those whose time is up. The first step
brings as many pods as the load says. Every scheduler gets the same sequence of a seed, one after
the other on the same nodes and API server, in an order that rotates with the seed.

`--full` goes on to 100 and 500 nodes (two hours). `--in-memory` needs no API server: the production
engine, on which a profile with kube-scheduler's two scores that takes ties at random stands in for
it, and plain best fit, whose ties go in the order in which ours do.

A scheduler that refuses more pods has more nodes free: `refused_gpus` tells. `undivided_nodes` are
those that are free or that a pod of 8 GPUs has for itself.

The run fails where a profile of ours leaves fewer nodes free than MostAllocated or best fit in the
mean over the seeds (of one size and load, or of a size and all loads), by more than three standard
errors of the paired differences, and with 8 pairs or more.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.model import names
from lib import gpu_churn_live, gpu_churn_memory, machine
from lib.gpu_churn import Case, case
from lib.gpu_churn_memory import BEST_FIT
from lib.kube_gpu_profiles import LEAST, MOST
from lib.paired_means import Difference, difference

OURS = (names.SCHEDULER, names.COST_SAVING, names.IN_ORDER)
#: Nodes → seeds.
LIVE = {4: 3, 20: 3}
FULL = {4: 8, 20: 8, 100: 3, 500: 1}
IN_MEMORY = {4: 200, 20: 60, 100: 20, 500: 8}
LOADS = (0.5, 0.7, 0.85)
ALL = "all"
FIGURES = ("free_nodes", "undivided_nodes", "free_gpus", "refused_pods", "refused_gpus")

#: Nodes, load, scheduler → the figures of each seed.
Results = dict[tuple[int, str, str], list[dict[str, float]]]
Cases = Sequence[Case]


def show(case: Case, scheduler: str, found: dict[str, float], seconds: float) -> None:
    figures = ", ".join(f"{found[f]:.2f} {f.replace('_', ' ')}" for f in FIGURES)
    text = f"{case.nodes} nodes, load {case.load:g}, seed {case.seed}, {scheduler}"
    print(f"{text}: {figures} ({seconds:.1f} s)", file=sys.stderr, flush=True)


def note(results: Results, case: Case, scheduler: str, found: dict[str, float]) -> None:
    results.setdefault((case.nodes, f"{case.load:g}", scheduler), []).append(found)


def with_all_loads(results: Results) -> Results:
    """Return the results, and for each size those of all loads together."""
    together: Results = {}
    for (nodes, _, scheduler), found in results.items():
        together.setdefault((nodes, ALL, scheduler), []).extend(found)
    return results | together


async def live(cases: Cases, schedulers: Sequence[str], model: str) -> Results:
    """Run the cases on a cluster of their own."""
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="alnair-bench-") as folder:
        async with (
            gpu_churn_live.cluster(Path(folder)) as cluster,
            Client(client_config.load(cluster.kubeconfig())) as client,
        ):
            for one in cases:
                await gpu_churn_live.have_nodes(client, one.nodes, model)
                turn = one.seed % len(schedulers)
                for scheduler in (*schedulers[turn:], *schedulers[:turn]):
                    begin = time.perf_counter()
                    found = await gpu_churn_live.run(client, one, scheduler)
                    show(one, scheduler, found, time.perf_counter() - begin)
                    note(results, one, scheduler, found)
    return results


def in_memory(cases: Cases, schedulers: Sequence[str], model: str, workers: int) -> Results:
    """Run the cases on engines."""
    results: Results = {}
    tasks = [(one, scheduler, model) for one in cases for scheduler in schedulers]
    with contextlib.ExitStack() as stack:
        run = map
        if workers > 1:
            run = stack.enter_context(multiprocessing.get_context("spawn").Pool(workers)).imap
        for task, (found, seconds) in zip(tasks, run(gpu_churn_memory.timed, tasks), strict=True):
            show(*task[:2], found, seconds)
            note(results, *task[:2], found)
    return results


def compared(
    results: Results, others: Iterable[str]
) -> dict[tuple[int, str, str, str], Difference]:
    """Return by how much more free nodes each of ours leaves than each of the others."""
    free = {key: [found["free_nodes"] for found in each] for key, each in results.items()}
    return {
        (nodes, load, ours, other): difference(free[nodes, load, ours], free[nodes, load, other])
        for nodes, load, ours in free
        if ours in OURS
        for other in others
    }


def table(results: Results, schedulers: Sequence[str]) -> str:
    """Return the mean free nodes as a Markdown table."""
    lines = [f"| nodes | load | {' | '.join(schedulers)} |", f"|---|---{'|---' * len(schedulers)}|"]
    for nodes, load in sorted({(nodes, load) for nodes, load, _ in results}):
        means = (fmean(f["free_nodes"] for f in results[nodes, load, s]) for s in schedulers)
        lines.append(f"| {nodes} | {load} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join(lines)


def report(results: Results, others: Sequence[str]) -> dict[str, Any]:
    """Put means, ratios and differences side by side, and say where ours leave fewer."""
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for (nodes, load, scheduler), found in results.items():
        means = {figure: round(fmean(f[figure] for f in found), 3) for figure in FIGURES}
        rows.setdefault((nodes, load), {})[scheduler] = means
    fewer = []
    for (nodes, load, ours, other), one in compared(results, others).items():
        row = rows[nodes, load]
        theirs = row[other]["free_nodes"]
        row[ours][f"against_{other}"] = {
            "ratio": round(row[ours]["free_nodes"] / theirs, 4) if theirs else None,
            "difference": round(one.mean, 4),
            "standard_error": round(one.error, 4) if one.pairs > 1 else None,
        }
        if one.below:
            fewer.append(
                f"{ours} leaves {-one.mean:.3f} nodes fewer free than {other} (standard error "
                f"{one.error:.3f}, {one.pairs} pairs) on {nodes} nodes, load {load}"
            )
    cells = [
        {"nodes": nodes, "load": load, "pairs": len(results[nodes, load, OURS[0]]), **row}
        for (nodes, load), row in sorted(rows.items())
    ]
    return {"fewer": fewer, "cells": cells}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], allow_abbrev=False, epilog="see the head of the file"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--in-memory", action="store_true", help="engines and no API server")
    where.add_argument("--full", action="store_true", help="4 to 500 nodes on a real API server")
    parser.add_argument("--nodes", type=whole_numbers, help="of 8 GPUs; 4,20 by default")
    parser.add_argument("--loads", type=parts, default=LOADS, help="parts of the GPUs")
    parser.add_argument("--seeds", type=int, help="how many of each size and load")
    parser.add_argument("--steps", type=int, help="20; 40 in memory")
    parser.add_argument("--model", default="V100M32", help="of the GPUs")
    parser.add_argument("--workers", type=int, default=2, help="processes; in memory only")
    options = parser.parse_args()
    if options.steps is None:
        options.steps = 40 if options.in_memory else 20
    seeds = IN_MEMORY if options.in_memory else FULL if options.full else LIVE
    chosen = options.nodes or tuple(seeds)
    options.sizes = {nodes: options.seeds or FULL.get(nodes, 3) for nodes in chosen}
    if not options.seeds:
        options.sizes |= {nodes: seeds[nodes] for nodes in chosen if nodes in seeds}
    if min((*chosen, *options.sizes.values(), options.steps)) < 1:
        parser.error("--nodes, --seeds and --steps must be at least 1")
    if not all(0 < load <= 1 for load in options.loads):
        parser.error("--loads must be more than 0 and at most 1")
    return options


def whole_numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def parts(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


def main() -> int:
    options = parse()
    cases = [
        case(nodes, load, seed, options.steps)
        for nodes, seeds in options.sizes.items()
        for load in options.loads
        for seed in range(seeds)
    ]
    others = (MOST, BEST_FIT) if options.in_memory else (MOST,)
    schedulers = (*OURS, *others, LEAST)
    if options.in_memory:
        results = in_memory(cases, schedulers, options.model, options.workers)
    else:
        results = asyncio.run(live(cases, schedulers, options.model))
    if len(options.loads) > 1:
        results = with_all_loads(results)
    print(table(results, schedulers))
    found = report(results, others)
    for line in found["fewer"]:
        print(line, file=sys.stderr)
    last = {
        "benchmark": "free_nodes",
        "kube_scheduler": "stood in for by a profile" if options.in_memory else "real",
        "seeds": options.sizes,
        "steps": options.steps,
        "model": options.model,
        **found,
        "machine": machine.describe(),
        "method": "nodes with 8 free GPUs after each step, mean over steps, then seeds; paired",
    }
    print(json.dumps(last))
    return 1 if found["fewer"] else 0


if __name__ == "__main__":
    sys.exit(main())
