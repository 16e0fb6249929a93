"""How exactly compute limits are kept, as work done against the limit, on the fake GPU.

Method: kernels with 20 % jitter run on a fake GPU that time-slices its contexts every 2 ms and
makes events and context switches cost time, by virtual clock. Limits of 25, 50 and 75 % over five
loads, one tenant at a time; pairs of unlike loads at 30/70 and 50/50; and a soft tenant alone.
After some seconds to settle, what each tenant's kernels really got of the GPU (the fake's own
account, no library's) is compared with its limit. `mae_pct` and `worst_pct` are errors in points
over single tenants, `pair_worst_pct` over pairs, `jain` is the least fairness of a pair (of shares
over limits), `soft_alone_pct` the least share of a soft tenant alone relative to the same load
without any limit.

`--preload PATH` measures another library by the same loads, in wall time and without our server; it
gets its limits by `--env NAME=VALUE`, where {percent} stands for the limit.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from native import build
from native.shares import BIMODAL, FIVE, GRAPHS, LONG, TINY, Run, Shares, Tenant

LOADS = {
    "tiny": TINY,
    "five_ms": FIVE,
    "long_sync": LONG,
    "graphs": GRAPHS,
    "bimodal": BIMODAL,
}
LIMITS = (25, 50, 75)
PAIRS = (
    ("tiny", "five_ms"),
    ("five_ms", "long_sync"),
    ("long_sync", "graphs"),
    ("graphs", "tiny"),
    ("bimodal", "tiny"),
    ("bimodal", "five_ms"),
)
SPLITS = ((30, 70), (70, 30), (50, 50))
SETTLED = 2.0
BOUNDS = {
    "mae_pct": 2.0,
    "worst_pct": 4.0,
    "pair_worst_pct": 2.0,
    "jain": 0.99,
    "soft_alone_pct": 97,
}


class Bench:
    """Runs cases, with our library or another."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def run(self, tenants: Sequence[Tenant]) -> Run:
        """One case, `--seconds` after settling."""
        options = self._options
        if options.preload:
            with Shares(tenants, SETTLED + options.seconds, clock="wall", serves=False) as case:
                return case.run()
        with Shares(tenants, SETTLED + options.seconds, seed=options.seed) as case:
            return case.run()

    def tenant(self, load: str, percent: int, *, soft: bool = False) -> Tenant:
        """A tenant of the library that is measured."""
        options = self._options
        if not options.preload:
            return Tenant(LOADS[load], percent, soft=soft)
        its = dict(pair.replace("{percent}", str(percent)).split("=", 1) for pair in options.env)
        return Tenant(LOADS[load], preload=options.preload, environment=its)

    def percents(self, tenants: Sequence[Tenant]) -> list[float]:
        """Percent of the GPU's time that each had."""
        run = self.run(tenants)
        end = run.times[-1]
        return [100 * run.share(at, SETTLED, end) for at in range(len(tenants))]


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one has all."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preload", help="another library, instead of ours")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE for that library")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured per case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("single", "pairs", "soft"), help="a part of the cases")
    parser.add_argument("--json", action="store_true", help="nothing but the line of JSON")
    options = parser.parse_args()
    build.libraries()
    bench, begun = Bench(options), time.perf_counter()
    say = (lambda _: None) if options.json else (lambda text: print(text, file=sys.stderr))

    single: list[dict[str, Any]] = []
    for load in LOADS if options.only in (None, "single") else ():
        for limit in LIMITS:
            (got,) = bench.percents([bench.tenant(load, limit)])
            single.append({"load": load, "limit": limit, "got": round(got, 2)})
            say(f"{load:10} limit {limit:3}: {got:6.2f}")
    pairs: list[dict[str, Any]] = []
    for loads in PAIRS if options.only in (None, "pairs") else ():
        for split in SPLITS:
            tenants = [bench.tenant(*its) for its in zip(loads, split, strict=True)]
            both = bench.percents(tenants)
            fair = jain([value / limit for value, limit in zip(both, split, strict=True)])
            pairs.append(
                {
                    "loads": loads,
                    "limits": split,
                    "got": [round(value, 2) for value in both],
                    "jain": round(fair, 5),
                }
            )
            say(f"{loads[0]:10} {loads[1]:10} {split}: {both[0]:6.2f} {both[1]:6.2f}  {fair:.4f}")
    soft: list[dict[str, Any]] = []
    for load in LOADS if options.only in (None, "soft") and not options.preload else ():
        (free,) = bench.percents([Tenant(LOADS[load])])
        (got,) = bench.percents([bench.tenant(load, 30, soft=True)])
        soft.append({"load": load, "unlimited": round(free, 2), "got": round(got, 2)})
        say(f"{load:10} soft alone: {got:6.2f} of {free:6.2f}")

    errors = [abs(case["got"] - case["limit"]) for case in single]
    pair_errors = [
        abs(value - limit)
        for case in pairs
        for value, limit in zip(case["got"], case["limits"], strict=True)
    ]
    every = errors + pair_errors
    result: dict[str, Any] = {
        "benchmark": "vgpu_accuracy",
        "mae_pct": round(statistics.fmean(every), 3) if every else None,
        "worst_pct": round(max(every), 3) if every else None,
        "pair_worst_pct": round(max(pair_errors), 3) if pairs else None,
        "jain": min(case["jain"] for case in pairs) if pairs else None,
        "pair_sum_pct": round(min(sum(case["got"]) for case in pairs), 2) if pairs else None,
        "soft_alone_pct": round(min(100 * case["got"] / case["unlimited"] for case in soft), 2)
        if soft
        else None,
    }
    low_is_good = ("mae_pct", "worst_pct", "pair_worst_pct")
    known = {name: result[name] for name in BOUNDS if result[name] is not None}
    result["met"] = all(
        value <= BOUNDS[name] if name in low_is_good else value >= BOUNDS[name]
        for name, value in known.items()
    )
    result |= {
        "bounds": BOUNDS,
        "single": single,
        "pairs": pairs,
        "soft": soft,
        "method": "oracle's GPU time against the limit, "
        f"{options.seconds:g} s after {SETTLED:g} s, "
        + ("wall clock" if options.preload else f"virtual clock, seed {options.seed}"),
        "library": options.preload or "libalnair_vgpu.so",
        "wall_s": round(time.perf_counter() - begun, 1),
        "machine": machine.describe(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
