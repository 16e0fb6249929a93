"""The published policies on the published orders give the published figures.

By default two runs, of which each meets much: GPU models, ties at the cut of the target workload,
pods with several GPUs, a thinned list. ALNAIR_ALL_PLACEMENTS=1 does all 162 (about 10 minutes).
"""

import csv
import os
import time
from pathlib import Path

import pytest

from alnair.scheduler.published.fragmentation import target_workload
from alnair.scheduler.published.profiles import POLICIES, published
from alnair.sim.placement import benchmark
from alnair.traces import openb_files
from alnair.traces.arrivals import in_given_order, nodes_in_given_order

DATA = Path(__file__).resolve().parents[4] / "benchmarks" / "data" / "openb"
EXPECTED = list(csv.DictReader((DATA / "expected.csv").read_text().splitlines()))
QUICK = {("gpuspec20", "43", "fgd"), ("multigpu30", "44", "clustering")}
#: Printed figures have two digits.
EQUAL = 0.0101


def names(order: str) -> list[str]:
    path = DATA / "orders" / f"{order}.txt.gz"
    return openb_files.names(str(path) if path.exists() else order)


def is_wanted(row: dict[str, str]) -> bool:
    key = (row["trace"], row["seed"], row["policy"])
    return bool(os.environ.get("ALNAIR_ALL_PLACEMENTS")) or key in QUICK


@pytest.mark.parametrize(
    "row",
    [row for row in EXPECTED if is_wanted(row)],
    ids=lambda row: f"{row['trace']}-{row['seed']}-{row['policy']}",
)
def test_a_published_policy_gives_the_published_figures(row: dict[str, str]) -> None:
    path = DATA / f"openb_pod_list_{row['trace']}.csv.gz"
    trace = openb_files.load(None, path if path.exists() else None)
    workload = target_workload(trace.pods)
    order = f"{row['trace']}-{row['seed']}"
    policy = next(p for p in POLICIES if p == row["policy"])
    run = benchmark.run(
        trace.nodes,
        in_given_order(trace.pods, names(f"{order}.pods"), order),
        published(policy, workload, lambda most: 0),
        workload,
        order=nodes_in_given_order(trace.nodes, names(f"{order}.nodes"), order),
        timer=time.perf_counter,
    )
    full, beyond = run.at(100), run.at(130)
    assert full is not None
    assert beyond is not None
    assert full.unallocated_pct == pytest.approx(float(row["unallocated_pct_at_100"]), abs=EQUAL)
    assert beyond.unallocated_pct == pytest.approx(float(row["unallocated_pct_at_130"]), abs=EQUAL)
    assert full.frag_pct == pytest.approx(float(row["frag_pct_at_100"]), abs=EQUAL)


def test_the_figures_to_compare_with_are_all_there() -> None:
    assert len(EXPECTED) == 9 * 3 * 6
    assert {(r["trace"], r["seed"], r["policy"]) for r in EXPECTED} >= QUICK
