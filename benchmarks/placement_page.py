"""Writes the tables and plots of docs/concepts/placement.md anew (`make bench-placement`).

Reads what placement.py, placement_regimes.py, placement_wait.py and placement_bound.py have
measured, and puts it between the markers `<!-- NAME: generated -->` and `<!-- end -->` of the page;
the prose around them is by hand, and says nothing that a new measurement could make wrong.
"""

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from alnair.scheduler.published.fragmentation import target_workload
from alnair.sim.placement import benchmark
from lib import placement_cases as cases
from lib.placement_mixes import mixes
from lib.placement_profiles import profile_of
from placement_regimes import table as regimes

OURS = "opportunitycost"
PROFILE = "alnair-scheduler"
RIVALS = ("fgd", "firstfit")
OTHERS = ("bestfit", "packing", "clustering", "dotprod")
TITLES = {
    "opportunitycost": "OpportunityCost",
    PROFILE: "in its profile",
    "fgd": "FGD",
    "firstfit": "FirstFit",
    "bestfit": "BestFit",
    "packing": "Packing",
    "clustering": "Clustering",
    "dotprod": "DotProd",
    "random": "Random",
}
#: Told apart by the colour-blind too. Source: Okabe, Ito, *Color Universal Design*, 2008.
COLOURS = {"opportunitycost": "#0072B2", "fgd": "#D55E00", "firstfit": "#009E73", "bestfit": "#888"}
LEVELS = (100, 130)
#: Sizes of jobs whose waits are shown.
WAITS = ("all", "shared", "1", "2-4", "5-8")
#: Means over seeds: trace, variant, policy, level → percent.
Means = Mapping[tuple[str, str, str, int], float]
Runs = Sequence[dict[str, Any]]


def means(runs: Runs) -> Means:
    """Return the unallocated GPU of each trace and policy, the mean over its seeds."""
    values: dict[tuple[str, str, str, int], list[float]] = {}
    for run in runs:
        for level in LEVELS:
            found = run[f"unallocated_pct_at_{level}"]
            if found is not None:
                key = (run["trace"], run["variant"], run["policy"], level)
                values.setdefault(key, []).append(found)
    return {key: statistics.fmean(found) for key, found in values.items()}


def gain(found: Means, trace: str, variant: str, level: int, policy: str = OURS) -> float | None:
    """Return by what percentage a policy is below the better of FGD and FirstFit."""
    rivals = [found.get((trace, variant, rival, level)) for rival in RIVALS]
    own = found.get((trace, variant, policy, level))
    known = [rival for rival in rivals if rival is not None]
    return None if own is None or not known else 100 * (1 - own / min(known))


def results(found: Means, bounds: Mapping[str, Any]) -> str:
    """Return the table of the nine traces, with the policy alone and in the profile."""
    shown = [p for p in (OURS, PROFILE, *RIVALS, *OTHERS) if _ran(found, p)]
    head = ["trace", *(TITLES[p] for p in shown), "gain", "limit"]
    rows = []
    for trace in cases.TRACES:
        cells = [_pair(found.get((trace, "", p, level)) for level in LEVELS) for p in shown]
        gains = _pair((gain(found, trace, "", level) for level in LEVELS), " %", 1)
        rows.append([trace, *cells, gains, _pair(_bound(bounds, trace, level) for level in LEVELS)])
    rows.append(["**mean gain**", *("" for _ in shown), f"**{_mean_gain(found, OURS)}**", ""])
    if _ran(found, PROFILE):
        rows.append(["in its profile", *("" for _ in shown), _mean_gain(found, shown[1]), ""])
    return _table(head, rows)


def variants(found: Means) -> str:
    """Return the table of the variants: the mean over traces of each."""
    names = list(dict.fromkeys(variant for _, variant, _, _ in found if variant))
    head = ["variant", "traces", TITLES[OURS], *(TITLES[r] for r in RIVALS), "gain", "worst gain"]
    rows = []
    for name in names:
        traces = sorted({trace for trace, variant, _, _ in found if variant == name})
        row = [f"`{name}`", str(len(traces))]
        row += [
            _pair(
                statistics.fmean(found[trace, name, policy, level] for trace in traces)
                for level in LEVELS
            )
            for policy in (OURS, *RIVALS)
        ]
        gains = {
            level: [g for trace in traces if (g := gain(found, trace, name, level)) is not None]
            for level in LEVELS
        }
        row.append(_pair((statistics.fmean(gains[level]) for level in LEVELS), " %", 1))
        row.append(_pair((min(gains[level]) for level in LEVELS), " %", 1))
        rows.append(row)
    return _table(head, rows)


def speed(runs: Runs) -> str:
    """Return the table of speed and memory, by policy and number of nodes."""
    rows = [
        [
            TITLES[run["policy"]],
            f"{run['nodes']:,}",
            f"{run['pods_per_second']:,.0f}",
            f"{run['p50_us']:.0f}",
            f"{run['p99_us']:,.0f}",
            f"{run['peak_rss_mb']:.0f}",
        ]
        for run in sorted(runs, key=lambda run: (run["policy"], run["nodes"]))
    ]
    return _table(["policy", "nodes", "pods/s", "p50 us", "p99 us", "MB"], rows)


def waits(runs: Runs) -> str:
    """Return the table of waits: means over the seeds, without the policy and with it."""
    rows = []
    for workload, load in sorted({(run["workload"], run["load"]) for run in runs}):
        for policy in ("without", "with"):
            key = (workload, load, policy)
            these = [r for r in runs if (r["workload"], r["load"], r["policy"]) == key]
            each = [
                f"{statistics.fmean(r['waits_mean_s'][size] for r in these):,.0f}"
                if all(size in r["waits_mean_s"] for r in these)
                else ""
                for size in WAITS
            ]
            names = ("wait_p99_s", "gpu_used_pct")
            p99, used = (statistics.fmean(r[name] for r in these) for name in names)
            rows.append([workload, f"{load:g}", policy, *each, f"{p99:,.0f}", f"{used:.1f}"])
    sizes = [f"{size} GPU" for size in WAITS[1:]]
    head = ["workload", "load", TITLES[OURS], "mean wait, s", *sizes, "p99, s", "GPUs used, %"]
    return _table(head, rows)


def summary(found: Means, runs: Runs) -> dict[str, Any]:
    """Return what the page says, for programs."""
    traces = [t for t in cases.TRACES if (t, "", OURS, 100) in found]
    below = [
        trace
        for trace in traces
        for level in LEVELS
        if all(found[trace, "", OURS, level] < found[trace, "", r, level] for r in RIVALS)
    ]
    return {
        "benchmark": "placement_page",
        "mean_gain_pct": {level: _gains_mean(found, OURS, level) for level in LEVELS},
        "mean_gain_pct_in_profile": {level: _gains_mean(found, PROFILE, level) for level in LEVELS},
        "below_both_everywhere": len(below) == len(LEVELS) * len(traces),
        "not_as_published": sum(run.get("equal") is False for run in runs),
        "compared_with_published": sum("equal" in run for run in runs),
    }


def _ran(found: Means, policy: str) -> bool:
    return any(key[2] == policy and not key[1] for key in found)


def _gains_mean(found: Means, policy: str, level: int) -> float | None:
    gains = [g for t in cases.TRACES if (g := gain(found, t, "", level, policy)) is not None]
    return round(statistics.fmean(gains), 2) if gains else None


def _mean_gain(found: Means, policy: str) -> str:
    return _pair((_gains_mean(found, policy, level) for level in LEVELS), " %", 1)


def _bound(bounds: Mapping[str, Any], trace: str, level: int) -> float | None:
    by_seed = bounds.get(trace, {}).values()
    return statistics.fmean(b[f"hindsight_at_{level}"] for b in by_seed) if by_seed else None


def _pair(values: Iterable[float | None], unit: str = "", digits: int = 2) -> str:
    texts = ["-" if value is None else f"{value:.{digits}f}" for value in values]
    return " / ".join(texts) + unit


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- plots ----------------------------------------------------------------------------------------


def draw_traces(found: Means, bounds: Mapping[str, Any], path: Path) -> None:
    """Draw what is left unallocated at 100 %, trace by trace."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    shown = [OURS, *RIVALS]
    for i, policy in enumerate(shown):
        heights = [found.get((t, "", policy, 100), 0.0) for t in cases.TRACES]
        places = [x + 0.26 * (i - 1) for x in range(len(cases.TRACES))]
        axes.bar(places, heights, width=0.25, label=TITLES[policy], color=COLOURS[policy])
    limits = [_bound(bounds, trace, 100) or 0.0 for trace in cases.TRACES]
    at = range(len(cases.TRACES))
    axes.hlines(limits, [x - 0.4 for x in at], [x + 0.4 for x in at], color="#333", linewidth=1)
    axes.plot([], [], color="#333", linewidth=1, label="limit by LP, in hindsight")
    axes.set_xticks(list(at), cases.TRACES, rotation=20, ha="right")
    axes.set_ylabel("unallocated GPU at 100 %, % of capacity")
    axes.legend(frameon=False)
    _save(figure, path)


def draw_course(path: Path) -> None:
    """Draw fragmentation while pods arrive: default, seed 42."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    case = cases.case("default", 42)
    workload = target_workload(case.pods)
    for policy in (OURS, *RIVALS, "bestfit"):
        run = benchmark.run(
            case.nodes,
            case.arrivals,
            profile_of(policy, "", case.pods, 42),
            workload,
            order=case.order,
            timer=time.perf_counter,
        )
        arrived = [level.arrived_pct for level in run.levels]
        style = {"color": COLOURS[policy], "label": TITLES[policy], "linewidth": 1.2}
        left.plot(arrived, [level.frag_pct for level in run.levels], **style)
        late = [level for level in run.levels if level.arrived_pct >= 88]
        free = [level.unallocated_pct for level in late]
        right.plot([level.arrived_pct for level in late], free, **style)
    left.set(xlabel="GPU asked for so far, % of capacity", ylabel="fragmentation F, % of capacity")
    right.set(xlabel="GPU asked for so far, % of capacity", ylabel="unallocated GPU, % of capacity")
    left.legend(frameon=False)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    style: Any = {"svg.hashsalt": "alnair", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(style):
        figure.savefig(path, format="svg", metadata={"Date": None}, facecolor="white")


# --- the page -------------------------------------------------------------------------------------


def put(page: str, name: str, text: str) -> str:
    """Replace what stands between the markers of a name."""
    pattern = re.compile(rf"(<!-- {re.escape(name)}: generated -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        sys.exit(f"the page has no marker <!-- {name}: generated -->: add it, or drop the table")

    def with_text(match: re.Match[str]) -> str:
        return f"{match[1]}{text}\n{match[2]}"

    return pattern.sub(with_text, page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path, help="folder of the measurements")
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()

    def read(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((options.measured / f"{name}.json").read_text())
        return found

    measured, bounds = read("placement"), read("placement-bounds")["bounds"]
    varied, waited = read("placement-variants")["runs"], read("placement-wait")["runs"]
    timed = read("placement-speed")["runs"]
    of_regimes = read("placement-regimes")["runs"]
    runs = measured["runs"]
    found, of_variants = means(runs), means(varied)
    page = options.docs / "concepts" / "placement.md"
    text = page.read_text()
    text = put(text, "results", results(found, bounds))
    text = put(text, "variants", variants(of_variants))
    text = put(text, "regimes", regimes(of_regimes, mixes()))
    text = put(text, "speed", speed(timed))
    text = put(text, "waits", waits(waited))
    text = put(text, "machine", f"Measured on: {measured['machine']}.")
    page.write_text(text)
    images = options.docs / "images"
    draw_traces(found, bounds, images / "placement-traces.svg")
    draw_course(images / "placement-course.svg")
    print(json.dumps(summary(found, runs)))


if __name__ == "__main__":
    main()
