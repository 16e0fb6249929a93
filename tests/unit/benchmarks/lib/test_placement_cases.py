"""The variants of the placement benchmark change what they say, and nothing else."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest

from alnair.traces.openb import TraceNode, TracePod

FILE = Path(__file__).resolve().parents[4] / "benchmarks" / "lib" / "placement_cases.py"
NODES = [TraceNode(f"n{i}", 1000 * (i + 1), 99, 2, "T4" if i % 3 else "G2") for i in range(12)]
PODS = [TracePod(f"p{i}", 10, 1, 1, (310, 620, 1000)[i % 3]) for i in range(30)]
PODS.append(TracePod("cpu", 10, 1, 0, 0))


@pytest.fixture(scope="module")
def cases() -> ModuleType:
    spec = importlib.util.spec_from_file_location("placement_cases", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(cases: ModuleType, variant: str, seed: int = 1) -> tuple[list[TraceNode], list[TracePod]]:
    nodes, pods = cases.variants()[variant](NODES, PODS, random.Random(seed))
    return list(nodes), list(pods)


def test_sizes_of_shares_become_others_and_whole_gpus_stay(cases: ModuleType) -> None:
    nodes, pods = make(cases, "shares")
    assert nodes == NODES
    becomes = {(old.gpu_milli, new.gpu_milli) for old, new in zip(PODS, pods, strict=True)}
    assert {(0, 0), (1000, 1000)} <= becomes
    assert len(becomes) == 4
    assert pods != make(cases, "shares", seed=2)[1]


def test_nodes_are_doubled_halved_or_dealt_other_models(cases: ModuleType) -> None:
    assert [n.cpu_milli for n in make(cases, "cpu2")[0]] == [2 * n.cpu_milli for n in NODES]
    assert make(cases, "half")[0] == NODES[::2]
    dealt = make(cases, "models")[0]
    assert dealt != NODES
    assert sorted(n.model for n in dealt) == sorted(n.model for n in NODES)


def test_about_a_third_of_the_pods_with_gpus_name_the_scarce_model(cases: ModuleType) -> None:
    pods = make(cases, "scarce-T4")[1]
    named = [p for p in pods if p.models == ("T4",)]
    assert 5 <= len(named) <= 15
    assert all(p.gpus for p in named)


def test_a_scaled_trace_has_so_many_of_each_node_and_pod(cases: ModuleType) -> None:
    nodes, pods = make(cases, "x4")
    assert len({n.name for n in nodes}) == 4 * len(NODES)
    assert len({p.name for p in pods}) == 4 * len(PODS)


def test_other_pods_leave_the_first_arrivals_as_they_were(cases: ModuleType) -> None:
    case = cases.case("multigpu20", 42)
    changed = cases.other_pods(case, 100, 42)
    assert changed[:100] == case.arrivals[:100]
    assert len(changed) == len(case.arrivals)
    assert [a.pod for a in changed[100:]] != [a.pod for a in case.arrivals[100:]]


def test_published_orders_are_those_of_three_seeds_and_others_are_ours(cases: ModuleType) -> None:
    published, ours = cases.case("multigpu20", 42), cases.case("multigpu20", 7)
    assert published.arrivals[0].name == "openb-pod-0583"
    assert {a.pod.name for a in published.arrivals} <= {p.name for p in published.pods}
    assert sorted(published.order) == sorted(ours.order)
    assert published.order != ours.order
