"""The benchmark of free nodes: one sequence for all, true counts, and a worse profile is seen."""

import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "free_nodes.py"
OURS = ("alnair-scheduler", "alnair-cost-saving", "alnair-in-order")


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))  # as for a script
    loaded = importlib.util.spec_from_file_location("free_nodes", BENCHMARK)
    assert loaded is not None
    assert loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    return module


def run(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["free_nodes.py", "--in-memory", "--workers=1", *arguments])
    code = benchmark.main()
    assert isinstance(code, int)
    return code


def test_ours_leave_as_many_nodes_free_as_kube_scheduler_and_best_fit(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--nodes=4,8", "--loads=0.5,0.7", "--seeds=8", "--steps=12")
    assert run(benchmark, monkeypatch, *arguments) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["fewer"] == []
    where = [(cell["nodes"], cell["load"], cell["pairs"]) for cell in report["cells"]]
    assert where == [
        (n, load, p) for n in (4, 8) for load, p in (("0.5", 8), ("0.7", 8), ("all", 16))
    ]
    for cell in report["cells"]:
        spread = cell["kube-least-allocated"]["free_nodes"]
        for name in OURS:
            assert cell[name]["free_nodes"] > 2 * spread
            assert cell[name]["free_nodes"] <= cell[name]["undivided_nodes"] <= cell["nodes"]
            assert {"against_kube-most-allocated", "against_best-fit"} < cell[name].keys()


def test_a_profile_that_leaves_fewer_nodes_free_fails_the_run(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "OURS", ("alnair-high-performance",))
    assert run(benchmark, monkeypatch, "--nodes=4", "--loads=0.5", "--seeds=8", "--steps=12") == 1
    fewer = json.loads(capsys.readouterr().out.splitlines()[-1])["fewer"]
    assert any("alnair-high-performance leaves" in line and "best-fit" in line for line in fewer)


def test_a_difference_needs_pairs_and_errors_to_count(benchmark: ModuleType) -> None:
    def below(*ours: float) -> bool:
        found = benchmark.difference(ours, [1.0] * len(ours)).below
        assert isinstance(found, bool)
        return found

    assert below(*[0.9, 0.8] * 4)
    assert not below(*[0.9, 0.8] * 3), "six pairs are too few"
    assert not below(*[0.9, 1.0, 1.1, 0.9] * 2), "less than three errors"
    assert not below(*[1.1] * 8)


def test_a_seed_is_one_sequence_and_never_asks_for_more_than_there_is(
    benchmark: ModuleType,
) -> None:
    first, again, other = (benchmark.case(20, 0.85, seed, 100) for seed in (1, 1, 2))
    assert first == again
    assert first.steps != other.steps
    there: dict[str, int] = {}
    loads = []
    for step in first.steps:
        assert not step.arrivals.keys() & there.keys()
        there |= step.arrivals
        assert sum(there.values()) <= 160
        loads.append(sum(there.values()) / 160)
        for pod in step.departures:
            del there[pod]
    assert 0.75 < sum(loads) / len(loads) < 0.95
    sizes = Counter(size for step in first.steps for size in step.arrivals.values())
    assert sizes.keys() == {1, 2, 4, 8}
    assert sizes[1] > sizes[2] > sizes[8]


def test_what_is_free_is_counted_from_where_pods_are(benchmark: ModuleType) -> None:
    tally = benchmark.gpu_churn_memory.Tally(4)
    assert tally.step({"a": 8, "b": 2, "c": 4}, {"a": "n1", "b": "n2"}) == ["c"]
    tally.gone("b")
    assert tally.step({"d": 1}, {"d": "n1-other"}) == []
    assert tally.result() == {
        "free_nodes": 2.0,
        "undivided_nodes": 3.0,
        "free_gpus": (22 + 23) / 2,
        "refused_pods": 1,
        "refused_gpus": 4,
    }
    with pytest.raises(RuntimeError, match="more than 8 GPUs are in use on n1"):
        tally.step({"e": 1}, {"e": "n1"})
