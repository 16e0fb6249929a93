"""How exactly compute limits are kept, as work done against the limit, on the fake GPU.

Method: kernels with 20 % jitter run on a fake GPU that time-slices its contexts every 2 ms and
makes events and context switches cost time, by virtual clock, beside the server's own loop.
Limits of 25, 50 and 75 % over five loads, one tenant at a time; pairs of unlike loads at 30/70
and 50/50; and a soft tenant alone. After some seconds to settle, what each tenant's kernels
really got of the GPU (the fake's own account, no library's) is compared with its limit. `mae_pct`
and `worst_pct` are errors in points over all tenants, `pair_worst_pct` over pairs, `jain` is the
least fairness of a pair (of shares over limits), `spread_pct` the mean standard deviation of
shares of one second, `soft_alone_pct` the least share of a soft tenant alone relative to the same
load without any limit.

`--sweep` asks the same of GPUs that are less kind (benchmarks/lib/share_cases.py).

`--preload PATH` measures another library beside ours, case by case, both in wall time and settled
for `--settle` seconds; it gets its limits by `--env NAME=VALUE`
(benchmarks/lib/other_library.py).
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lib import machine, other_library
from lib.other_library import OTHER, OTHERS_SETTLED, OURS, SETTLED

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from lib.share_cases import (
    LIMITS,
    LOADS,
    OWN_CASES,
    PAIRS,
    ROWS,
    SINGLE,
    SPLITS,
    SWEPT,
    SWEPT_SHORTLY,
)
from native import build
from native.shares import Shares, Tenant

BOUNDS = {
    "mae_pct": 2.0,
    "worst_pct": 4.0,
    "pair_worst_pct": 2.0,
    "jain": 0.99,
    "soft_alone_pct": 97,
}
#: Seconds until NVML has corrected the prices of kernels that run side by side.
SWEEP_SETTLED = 6.0
#: Of the whole sweep, points.
SWEEP_BOUNDS = {"mae_pct": 3.0, "worst_pct": 6.0}
LOW_IS_GOOD = ("mae_pct", "worst_pct", "pair_worst_pct")

Say = Callable[[str], None]


class Bench:
    """Runs cases, with our library or another."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.names = [OURS, *([OTHER] if options.preload else [])]
        self.clock = options.clock or ("wall" if options.preload else "virtual")
        default = OTHERS_SETTLED if options.preload else SETTLED
        if options.sweep:
            default = SWEEP_SETTLED
        self.settled = default if options.settle is None else options.settle

    def tenant(self, name: str, load: str, percent: int, *, soft: bool = False) -> Tenant:
        """A tenant of a library."""
        if name == OURS:
            return Tenant(LOADS[load], percent, soft=soft)
        its = other_library.filled(self._options.env, percent=percent)
        return Tenant(LOADS[load], preload=self._options.preload, environment=its)

    def run(self, tenants: Sequence[Tenant], **more: object) -> tuple[list[float], float]:
        """Percent of the GPU's time that each had, and the spread of its seconds in points."""
        options, end = self._options, self.settled + self._options.seconds
        serves = all(tenant.preload is None for tenant in tenants)
        with Shares(
            tenants, end, clock=self.clock, serves=serves, seed=options.seed, **more
        ) as case:
            run = case.run()
        spreads = []
        for at in range(len(tenants)):
            seconds = [100 * share for share in run.windows(at, self.settled, run.times[-1])]
            spreads.append(statistics.pstdev(seconds) if seconds else 0.0)
        got = [100 * run.share(at, self.settled, run.times[-1]) for at in range(len(tenants))]
        return [round(value, 2) for value in got], statistics.fmean(spreads)

    def case(
        self, loads: Sequence[str], limits: Sequence[int], say: Say, **more: object
    ) -> dict[str, Any]:
        """One case by each library, one after the other."""
        row: dict[str, Any] = {"loads": loads, "limits": limits, "got": {}, "spread_pct": {}}
        for name in self.names:
            tenants = [self.tenant(name, *its) for its in zip(loads, limits, strict=True)]
            got, spread = self.run(tenants, **more)
            row["got"][name], row["spread_pct"][name] = got, round(spread, 2)
        columns = "".join(
            f"{'/'.join(f'{value:.1f}' for value in row['got'][name]):>14}"
            f" ±{row['spread_pct'][name]:4.1f}"
            for name in self.names
        )
        say(f"{' + '.join(loads):24}{'/'.join(map(str, limits)):>8}{columns}")
        return row


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one has all."""
    total = sum(value**2 for value in values)
    return sum(values) ** 2 / (len(values) * total) if total else 1.0


def errors_of(cases: Sequence[dict[str, Any]], name: str) -> list[float]:
    """Points by which the tenants of these cases missed their limits."""
    return [
        abs(value - limit)
        for case in cases
        for value, limit in zip(case["got"][name], case["limits"], strict=True)
    ]


def summary(cases: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """What one library made of the cases."""
    every, pairs = errors_of(cases, name), [case for case in cases if len(case["loads"]) > 1]
    fair = [
        jain([g / limit for g, limit in zip(case["got"][name], case["limits"], strict=True)])
        for case in pairs
    ]
    return {
        "mae_pct": round(statistics.fmean(every), 3) if every else None,
        "worst_pct": round(max(every), 3) if every else None,
        "pair_worst_pct": round(max(errors_of(pairs, name)), 3) if pairs else None,
        "jain": round(min(fair), 5) if pairs else None,
        "pair_sum_pct": round(min(sum(case["got"][name]) for case in pairs), 2) if pairs else None,
        "spread_pct": round(statistics.fmean(case["spread_pct"][name] for case in cases), 2)
        if cases
        else None,
    }


def sweep(bench: Bench, say: Say, *, short: bool) -> dict[str, Any]:
    """Our error on each kind of GPU, and over all of them."""
    rows, every = {}, []
    for row, options in ROWS.items():
        cases = OWN_CASES.get(row, SWEPT_SHORTLY if short else SWEPT)
        found = [bench.case(*its, say, **options) for its in (cases[:1] if short else cases)]
        rows[row] = {**summary(found, OURS), "options": options, "cases": found}
        every += found
        say(f"{row}: mean error {rows[row]['mae_pct']}, worst {rows[row]['worst_pct']}\n")
    return {**summary(every, OURS), "rows": rows}


def soft_alone(bench: Bench, say: Say) -> list[dict[str, Any]]:
    """What a soft tenant alone has, beside what the load has without any limit."""
    found = []
    for load in SINGLE:
        (free,), _ = bench.run([Tenant(LOADS[load])])
        (got,), _ = bench.run([bench.tenant(OURS, load, 30, soft=True)])
        found.append({"load": load, "unlimited": free, "got": got})
        say(f"{load:24} soft alone: {got:6.2f} of {free:6.2f}")
    return found


def met(found: dict[str, Any], bounds: dict[str, float]) -> bool:
    """Whether all that was measured is within its bound."""
    known = {name: found[name] for name in bounds if found.get(name) is not None}
    return all(
        value <= bounds[name] if name in LOW_IS_GOOD else value >= bounds[name]
        for name, value in known.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preload", **other_library.PRELOAD)
    parser.add_argument("--env", **other_library.ENV)
    parser.add_argument("--seconds", type=float, default=10.0, help="measured per case")
    parser.add_argument(
        "--settle",
        type=float,
        help="seconds before that: 2, in the sweep 6, with another library 10",
    )
    parser.add_argument("--clock", choices=("virtual", "wall"), help="wall with another library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("single", "pairs", "soft"), help="a part of the cases")
    parser.add_argument(
        "--loads", nargs="+", choices=SINGLE, default=SINGLE, help="of single cases"
    )
    parser.add_argument("--sweep", action="store_true", help="GPUs less kind, instead")
    parser.add_argument("--short", action="store_true", help="one case for each of these GPUs")
    parser.add_argument("--json", action="store_true", help="nothing but the line of JSON")
    options = parser.parse_args()
    if options.sweep and options.preload:
        parser.error("the sweep is of our library: leave --preload out")
    build.libraries()
    bench, begun = Bench(options), time.perf_counter()
    say: Say = (lambda _: None) if options.json else (lambda text: print(text, file=sys.stderr))
    result: dict[str, Any] = {"benchmark": "vgpu_accuracy"}
    if options.sweep:
        found = sweep(bench, say, short=options.short)
        result |= {**found, "bounds": SWEEP_BOUNDS, "met": met(found, SWEEP_BOUNDS)}
    else:
        say(f"{'':24}{'limit':>8}" + "".join(f"{name:>20}" for name in bench.names))
        single, pairs, soft = [], [], []
        if options.only in (None, "single"):
            single = [bench.case([ld], [at], say) for ld in options.loads for at in LIMITS]
        if options.only in (None, "pairs"):
            pairs = [bench.case(both, split, say) for both in PAIRS for split in SPLITS]
        if options.only in (None, "soft") and not options.preload:
            soft = soft_alone(bench, say)
        found = summary([*single, *pairs], OURS)
        if soft:
            found["soft_alone_pct"] = round(
                min(100 * case["got"] / case["unlimited"] for case in soft), 2
            )
        result |= {**found, "bounds": BOUNDS, "met": met(found, BOUNDS)}
        if options.preload:
            other = summary([*single, *pairs], OTHER)
            result |= {
                "other": other,
                "ratio_mae": other_library.ratio(other["mae_pct"], found["mae_pct"]),
            }
        result |= {"single": single, "pairs": pairs, "soft": soft}
    result |= {
        "method": "oracle's GPU time against the limit, "
        f"{options.seconds:g} s after {bench.settled:g} s, {bench.clock} clock, "
        f"seed {options.seed}",
        "library": options.preload or "",
        "wall_s": round(time.perf_counter() - begun, 1),
        "machine": machine.describe(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
