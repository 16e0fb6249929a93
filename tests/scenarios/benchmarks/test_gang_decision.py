"""The benchmark of gangs: the engine chooses the racks of a plain loop, and a wrong one is seen."""

import importlib.util
import json
import random
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "gang_decision.py"


@pytest.fixture
def benchmark() -> ModuleType:
    loaded = importlib.util.spec_from_file_location("gang_decision", BENCHMARK)
    assert loaded is not None
    assert loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("gangs", "size"), [(1, 60), (12, 9), (40, 20)])
def test_each_gang_lies_in_the_tightest_rack_that_has_room(
    benchmark: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    gangs: int,
    size: int,
) -> None:
    arguments = ["--nodes=60", "--racks=6", f"--gangs={gangs}", f"--size={size}", "--repeat=3"]
    monkeypatch.setattr("sys.argv", ["gang_decision.py", *arguments])
    benchmark.main()
    report = json.loads(capsys.readouterr().out)
    assert (report["gangs"], report["size"], report["racks"]) == (gangs, size, 6)
    assert report["placements_as_the_plain_loop"]


def test_a_gang_in_another_rack_fails_the_run(benchmark: ModuleType) -> None:
    nodes = benchmark.make_nodes(60, 6)
    load = benchmark.make_load(nodes, random.Random(1))
    gangs, pods = benchmark.make_gangs(1, 20)
    found, _ = benchmark.decide(nodes, load, gangs, pods, 1)
    benchmark.check(nodes, load, gangs, found)
    ((name, placed),) = found.items()
    rack = {node.name: node.labels[benchmark.RACK] for node in nodes}
    pod, here = next(iter(placed.items()))
    elsewhere = next(node for node in rack if rack[node] != rack[here])
    with pytest.raises(SystemExit, match="not all in"):
        benchmark.check(nodes, load, gangs, {name: {**placed, pod: elsewhere}})
