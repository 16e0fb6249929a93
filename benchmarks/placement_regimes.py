"""Who leaves the least GPU unallocated, whatever else is scarce: mixes x seeds, side by side.

Method: as `placement.py`, on mixes that `lib/placement_mixes.py` makes of the openb lists by a
seed: more pods without GPUs, fewer cores or less memory, nodes without GPUs, other shares, sets and
models. Half of the mixes were kept aside while constants were chosen, and are marked with `*`.
A mix is behind where OpportunityCost leaves more than the better of FGD and FirstFit; the last line
says by how much.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alnair.sim.placement import benchmark
from lib import machine, placement_mixes
from lib.placement_mixes import Mix, mixes
from lib.placement_profiles import profile_of

OURS = "opportunitycost"
RIVALS = ("fgd", "firstfit")
POLICIES = (OURS, *RIVALS)
LEVELS = (100, 130)

#: Mix, seed, policy → percent unallocated at each of `LEVELS`.
Runs = dict[str, list[float]]
#: Mix, seed, policy.
Task = tuple[str, int, str]


def one(task: Task) -> tuple[Task, list[float]]:
    """Return the task, and the unallocated GPU at each level, percent of capacity."""
    mix, seed, policy = task
    case = placement_mixes.case(mix, seed)
    profile = profile_of(policy, "", case.pods, seed)
    run = benchmark.run(
        case.nodes, case.arrivals, profile, (), order=case.order, timer=time.perf_counter
    )
    found = [run.at(level) for level in LEVELS]
    return task, [level.unallocated_pct for level in found if level is not None]


def carry_out(names: Sequence[str], seeds: Sequence[int], out: Path | None, workers: int) -> Runs:
    """Run what is not in the file yet, show how far it is, and return what was asked for."""
    runs: Runs = json.loads(out.read_text())["runs"] if out and out.exists() else {}
    wanted = [(mix, seed, policy) for mix in names for seed in seeds for policy in POLICIES]
    left = [task for task in wanted if _key(*task) not in runs]
    begun = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(min(workers, max(len(left), 1))) as pool:
        for number, (task, found) in enumerate(pool.imap_unordered(one, left), 1):
            runs[_key(*task)] = found
            if out is not None:
                half = out.with_suffix(".part")  # an interrupt must not leave half a file
                text = json.dumps({"machine": machine.describe(), "runs": runs}, indent=1)
                half.write_text(text)
                half.replace(out)
            remaining = (time.monotonic() - begun) / number * (len(left) - number)
            shown = " / ".join(f"{percent:.2f}" for percent in found)
            line = f"{number}/{len(left)} {_key(*task)}: {shown} % ({remaining:.0f} s left)"
            print(line, file=sys.stderr, flush=True)
    return {_key(*task): runs[_key(*task)] for task in wanted}


def _key(mix: str, seed: int, policy: str) -> str:
    return f"{mix}-{seed} {policy}"


def means(runs: Runs, mix: str) -> dict[str, list[float]]:
    """Return the means over the seeds that ran, by policy, at each level."""
    found: dict[str, list[list[float]]] = {}
    for key, values in runs.items():
        case, policy = key.split()
        if case.rpartition("-")[0] == mix:
            found.setdefault(policy, []).append(values)
    return {
        policy: [statistics.fmean(column) for column in zip(*of_seeds, strict=True)]
        for policy, of_seeds in found.items()
    }


def gains(found: Mapping[str, Sequence[float]], policy: str) -> list[float]:
    """Return by what percentage a policy is below the better of FGD and FirstFit, by level."""
    best = [min(found[rival][i] for rival in RIVALS) for i in range(len(LEVELS))]
    return [100 * (1 - own / other) for own, other in zip(found[policy], best, strict=True)]


def table(runs: Runs, chosen: Mapping[str, Mix]) -> str:
    """Return the mixes as a Markdown table."""
    head = ["regime", "mix", *POLICIES, "gain"]
    rows = [head, ["---"] * len(head)]
    for name, mix in chosen.items():
        found = means(runs, name)
        cells = [_pair(found[policy]) for policy in POLICIES]
        gain = f"{_pair(gains(found, OURS), 1)} %"
        rows.append([mix.regime, name + "*" * mix.aside, *cells, gain])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _pair(values: Sequence[float], digits: int = 2) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in values)


def summary(runs: Runs, chosen: Mapping[str, Mix]) -> dict[str, Any]:
    """Return how far ahead it is, by regime, and where it is behind, for programs."""
    by_mix = {name: means(runs, name) for name in chosen}
    by_regime: dict[str, list[list[float]]] = {}
    for name, mix in chosen.items():
        by_regime.setdefault(mix.regime, []).append(gains(by_mix[name], OURS))
    behind = {
        name: [round(gain, 2) for gain in gains(found, OURS)]
        for name, found in by_mix.items()
        if min(gains(found, OURS)) < 0
    }
    aside = [gains(by_mix[name], OURS) for name, mix in chosen.items() if mix.aside]
    return {
        "benchmark": "placement_regimes",
        "mixes": len(chosen),
        "seeds": sorted({int(key.split()[0].rpartition("-")[2]) for key in runs}),
        "gain_pct": {regime: _means(found) for regime, found in by_regime.items()},
        "gain_pct_of_mixes_kept_aside": _means(aside) if aside else None,
        "behind": behind,
        "machine": machine.describe(),
    }


def _means(found: Sequence[Sequence[float]]) -> list[float]:
    return [round(statistics.fmean(column), 2) for column in zip(*found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mixes", default="all", help="all, chosen-on, aside, or names")
    parser.add_argument("--seeds", default="7,11")
    parser.add_argument("--out", type=Path, help="results so far, and where they go")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    known = mixes()
    sets = {"all": (False, True), "chosen-on": (False,), "aside": (True,)}
    if options.mixes in sets:
        names = [name for name, mix in known.items() if mix.aside in sets[options.mixes]]
    else:
        names = options.mixes.split(",")
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; mixes are {', '.join(known)}")
    seeds = [int(seed) for seed in options.seeds.split(",")]
    runs = carry_out(names, seeds, options.out, options.workers)
    chosen = {name: known[name] for name in names}
    print(table(runs, chosen))
    print(json.dumps(summary(runs, chosen)))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted; with --out, the same command goes on where this ended", file=sys.stderr)
        sys.exit(130)
