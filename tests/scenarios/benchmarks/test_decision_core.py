"""The benchmark of the core: what it prints, and that it fails when a placement is wrong."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "decision_core.py"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))  # as for a script
    loaded = importlib.util.spec_from_file_location("decision_core", BENCHMARK)
    assert loaded is not None
    assert loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    # Here it would look through all that the tests made before, and keep it in every later round.
    rests = SimpleNamespace(collect=int, freeze=int, unfreeze=int)
    monkeypatch.setattr(module, "gc", rests)
    monkeypatch.setattr(module.core_kinds, "gc", rests)
    return module


def run(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, kind: str, nodes: int, pods: int
) -> int:
    arguments = ["--nodes", str(nodes), "--pods", str(pods), "--kind", kind, "--repeat", "2"]
    monkeypatch.setattr("sys.argv", ["decision_core.py", *arguments])
    code = benchmark.main()
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("kind", ["identical", "distinct"])
@pytest.mark.parametrize(("nodes", "pods"), [(50, 200), (2, 300)])
def test_all_placements_equal_those_of_the_full_scan(
    benchmark: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    nodes: int,
    pods: int,
) -> None:
    assert run(benchmark, monkeypatch, kind, nodes, pods) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["nodes"], report["pods"], report["kind"]) == (nodes, pods, kind)
    assert report["oracle_equal"]
    assert report["compared"] == 2 * pods
    assert report["nodes_scored_pct"] == 100
    assert 0 < report["placed"] <= pods
    rates = report["decisions_per_s"]
    assert 0 < rates["min"] <= rates["median"] <= rates["max"]


def test_distinct_requests_are_all_different(benchmark: ModuleType) -> None:
    specs = benchmark.make_specs(500, "distinct", benchmark.random.Random(1))
    assert len(set(specs)) == 500


def test_one_wrong_placement_fails_the_run(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scan = benchmark.full_scan

    def wrong(*arguments: object) -> list[str]:
        placed: list[str] = scan(*arguments)
        placed[-1] = "elsewhere"
        return placed

    monkeypatch.setattr(benchmark, "full_scan", wrong)
    assert run(benchmark, monkeypatch, "identical", 10, 20) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert not report["oracle_equal"]
    assert report["differing"] == 2


@pytest.mark.parametrize("kind", ["spread", "antiaffinity", "preferred", "gangs", "preemption"])
def test_the_other_kinds_place_all_that_they_should(
    benchmark: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    assert run(benchmark, monkeypatch, kind, 500, 50) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    rates = report["decisions_per_s"]
    assert 0 < rates["min"] <= rates["median"] <= rates["max"]


@pytest.mark.parametrize(
    ("kind", "target"), [("backlog", "alike_loss_pct"), ("fractions", "burst_ms")]
)
def test_targets_are_told_with_their_limits(
    benchmark: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    target: str,
) -> None:
    monkeypatch.setattr(benchmark.core_kinds, "BACKLOG", 100)
    assert run(benchmark, monkeypatch, kind, 20, 50) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    told = report["targets"][target]
    assert told["met"] == (report[target]["median"] < told["below"])
