"""How much GPU placement policies leave unallocated: traces x seeds x policies, side by side.

Method: `alnair.sim.placement.benchmark`, the protocol of Weng et al. (USENIX ATC'23) on the
production engine. The seeds 42 to 44 take the published orders of pods and nodes, and a published
policy is compared with its published figures (`data/openb/expected.csv`, equal to 0.01 points);
other seeds, and all variants, take orders of our own. Two worker processes; every finished run is
kept in the file of `--out`, and a run that is there is not done again.

Variants (made from the trace by the seed): `shares` other sizes of shares, `cpu2` doubled cores,
`half` every second node, `models` GPU models dealt out anew, `scarce-MODEL` a third of the pods
with GPUs ask for that model, `x2` `x4` `x8` so many times the nodes and pods.

`--online` asks instead, and keeps no results, whether a policy looks ahead: it replaces all pods
after the k-th by others, and the first k decisions must stay. (FGD as published reads the whole
list beforehand.)
"""

import argparse
import csv
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from alnair.cli.process_memory import peak_rss_mb
from alnair.scheduler.published.fragmentation import target_workload
from alnair.scheduler.published.profiles import POLICIES
from alnair.sim.placement import benchmark
from alnair.sim.placement import result as placement_result
from lib import machine
from lib import placement_cases as cases
from lib.placement_profiles import profile_of

PROFILES = ("alnair-scheduler", "alnair-in-order")
#: Pods after which a policy is shown others.
KEPT = (100, 1_000, 5_000)
#: Printed figures have two digits.
EQUAL = 0.0101
FIGURES = ("unallocated_pct_at_100", "unallocated_pct_at_130", "frag_pct_at_100")

#: Trace, seed, variant, policy, configuration file.
Task = tuple[str, int, str, str, str]


def one(task: Task) -> dict[str, Any]:
    """Run one task, in a process of its own."""
    trace, seed, variant, policy, config = task
    case = cases.case(trace, seed, variant)
    begun = time.process_time()
    run = benchmark.run(
        case.nodes,
        case.arrivals,
        profile_of(policy, config, case.pods, seed),
        target_workload(case.pods),
        order=case.order,
        timer=time.perf_counter,
    )
    result = placement_result.of(
        run, trace=trace, policy=policy, seed=seed, peak_rss_mb=peak_rss_mb()
    )
    found = {"variant": variant, **placement_result.as_dict(result)}
    found["cpu_s"] = round(time.process_time() - begun, 2)
    found["nodes"] = len(case.nodes)
    expected = published_figures().get((trace, str(seed), policy)) if not variant else None
    if expected:
        found["equal"] = all(abs(found[f] - float(expected[f"{f}"])) < EQUAL for f in FIGURES)
    return found


def online(task: Task) -> dict[str, Any]:
    """Say at which of `KEPT` other pods afterwards change what was decided before."""
    trace, seed, variant, policy, config = task
    case = cases.case(trace, seed, variant)

    def decisions(
        arrivals: Sequence[cases.Arrival], kept: int
    ) -> tuple[benchmark.TracePlacement, ...]:
        pods = [a.pod for a in arrivals]  # what a policy that looks ahead sees
        return benchmark.run(
            case.nodes,
            arrivals[:kept],
            profile_of(policy, config, pods, seed),
            (),
            order=case.order,
            timer=time.perf_counter,
        ).decisions

    own = decisions(case.arrivals, max(KEPT))
    changed = [
        kept for kept in KEPT if decisions(cases.other_pods(case, kept, seed), kept) != own[:kept]
    ]
    return {
        "trace": trace,
        "seed": seed,
        "variant": variant,
        "policy": policy,
        "online": not changed,
        "changed_at": changed,
    }


def published_figures() -> dict[tuple[str, str, str], dict[str, str]]:
    rows = csv.DictReader((cases.DATA / "expected.csv").read_text().splitlines())
    return {(row["trace"], row["seed"], row["policy"]): row for row in rows}


def key(found: dict[str, Any]) -> str:
    return label(found["trace"], found["seed"], found["variant"], found["policy"])


def label(trace: str, seed: int, variant: str, policy: str) -> str:
    return " ".join(part for part in (f"{trace}-{seed}", variant, policy) if part)


def load(out: Path | None) -> dict[str, dict[str, Any]]:
    if out is None or not out.exists():
        return {}
    return {key(found): found for found in json.loads(out.read_text())["runs"]}


def save(out: Path | None, runs: Iterable[dict[str, Any]]) -> None:
    if out is not None:
        half = out.with_suffix(".part")  # an interrupt must not leave half a file
        half.write_text(json.dumps({"machine": machine.describe(), "runs": list(runs)}, indent=1))
        half.replace(out)


def carry_out(
    tasks: Sequence[Task], done: dict[str, dict[str, Any]], options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Run what is not done yet, and show each line as it comes."""
    left = [task for task in tasks if label(*task[:4]) not in done or options.online]
    results: dict[str, dict[str, Any]] = {} if options.online else dict(done)
    begun = time.monotonic()
    context = multiprocessing.get_context("spawn")
    # A process per run: its memory is that of the run.
    with context.Pool(min(options.workers, max(len(left), 1)), maxtasksperchild=1) as pool:
        finished = pool.imap_unordered(online if options.online else one, left)
        for number, found in enumerate(finished, 1):
            results[key(found)] = found
            if not options.online:
                save(options.out, results.values())
            remaining = (time.monotonic() - begun) / number * (len(left) - number)
            print(
                f"{number}/{len(left)} {key(found)}: {describe(found)} ({remaining:.0f} s left)",
                file=sys.stderr,
                flush=True,
            )
    return results


def describe(found: dict[str, Any]) -> str:
    if "online" in found:
        return "online" if found["online"] else f"decides otherwise at k = {found['changed_at']}"
    mark = {True: ", as published", False: ", NOT AS PUBLISHED", None: ""}[found.get("equal")]
    return (
        f"{found['unallocated_pct_at_100']} / {found['unallocated_pct_at_130']} %{mark}, "
        f"{found['pods_per_second']:.0f} pods/s, p50 {found['p50_us']:.0f} us"
    )


def table(runs: Iterable[dict[str, Any]], policies: Sequence[str]) -> str:
    """Return means over seeds as a Markdown table: unallocated GPU at 100 / 130 %."""
    cells: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for run in runs:
        place = cells.setdefault((run["trace"], run["variant"]), {})
        place.setdefault(run["policy"], []).append(run)
    lines = [f"| trace | {' | '.join(policies)} |", f"|---{'|---' * len(policies)}|"]
    for (trace, variant), by_policy in cells.items():
        row = [f"{trace} {variant}".strip()]
        for policy in policies:
            means = _means(by_policy.get(policy, ()))
            row.append(" / ".join("-" if mean is None else f"{mean:.2f}" for mean in means))
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _means(runs: Sequence[dict[str, Any]]) -> list[float | None]:
    """Return the mean unallocated GPU at 100 and at 130 %."""
    means: list[float | None] = []
    for figure in FIGURES[:2]:
        values = [run[figure] for run in runs if run[figure] is not None]
        means.append(round(sum(values) / len(values), 3) if values else None)
    return means


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=",".join(cases.TRACES))
    parser.add_argument("--seeds", default="42,43,44", help="42 to 44 are the published orders")
    parser.add_argument("--policies", default=",".join((*POLICIES[:-1], *PROFILES)))
    parser.add_argument("--variants", default="", help="none = the traces as they are; or 'all'")
    parser.add_argument("--config", default="", help="configuration file with profiles")
    parser.add_argument("--online", action="store_true", help="does a policy look ahead?")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="results so far, and where they go")
    options = parser.parse_args()
    names = options.policies.split(",")
    known = cases.variants()
    variants = list(known) if options.variants == "all" else options.variants.split(",")
    unknown = [v for v in variants if v and v not in known]
    unknown += [t for t in options.traces.split(",") if t not in cases.TRACES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; variants are {', '.join(known)}")
    tasks = [
        (trace, int(seed), variant, policy, options.config)
        for variant in variants
        for trace in options.traces.split(",")
        for seed in options.seeds.split(",")
        for policy in names
    ]
    results = carry_out(tasks, load(options.out), options)
    wanted = [results[label(*task[:4])] for task in tasks]
    wrong = [key(run) for run in wanted if run.get("equal") is False]
    last: dict[str, Any] = {
        "benchmark": "placement",
        "runs": len(wanted),
        "not_as_published": wrong,
        "compared_with_published": sum("equal" in run for run in wanted),
        "machine": machine.describe(),
    }
    if options.online:
        last["not_online"] = [key(run) for run in wanted if not run["online"]]
    else:
        print(table(wanted, names))
        last["mean_unallocated_pct"] = {
            policy: _means([run for run in wanted if run["policy"] == policy]) for policy in names
        }
        last["p50_us"] = {
            policy: min(run["p50_us"] for run in wanted if run["policy"] == policy)
            for policy in names
        }
    print(json.dumps(last))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; with --out, the same command goes on where this ended", file=sys.stderr)
        sys.exit(130)
