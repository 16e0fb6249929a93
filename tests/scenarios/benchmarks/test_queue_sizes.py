"""The benchmark of a queue of many sizes; and that what makes it fast changes no decision."""

import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from alnair.model.action import Action, Report
from alnair.scheduler.engine.events import Event
from alnair.scheduler.placement.hopes import Hopes
from alnair.scheduler.profiles import profiles
from alnair.scheduler.queue.unit import WaitingClass
from alnair.sim.jobs import Scenario
from alnair.sim.simulation import Simulation, SimulationOptions

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[int, int, int], Scenario]]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # as for a script
    found: dict[str, Callable[[int, int, int], Scenario]]
    found = importlib.import_module("lib.size_loads").LOADS
    return found


def decisions(told: Scenario) -> list[tuple[float, Action]]:
    """Return what was decided, and when; not what owners were told, for only who is tried is."""
    simulation = Simulation(told, profiles(), SimulationOptions())
    step = simulation.engine.step
    found: list[tuple[float, Action]] = []

    def noting(batch: Sequence[Event], now: float) -> list[Action]:
        actions = step(batch, now)
        found.extend((now, action) for action in actions if not isinstance(action, Report))
        return actions

    simulation.engine.step = noting  # type: ignore[assignment, method-assign]
    while simulation.advance(1000):
        pass
    assert simulation.progress.finished == len(told.jobs)
    assert len(found) >= len(told.jobs)
    return found


@pytest.mark.parametrize(
    ("load", "jobs", "nodes"), [("shares", 120, 2), ("mixed", 120, 3), ("contested", 60, 3)]
)
def test_looking_closely_at_all_that_wait_gives_the_same_decisions(
    loads: dict[str, Callable[[int, int, int], Scenario]],
    monkeypatch: pytest.MonkeyPatch,
    load: str,
    jobs: int,
    nodes: int,
) -> None:
    told = loads[load](jobs, nodes, 1)
    quick = decisions(told)
    looked = 0

    def closely(_: Hopes, classes: Sequence[WaitingClass]) -> list[WaitingClass]:
        nonlocal looked
        looked += len(classes)
        return list(classes)

    monkeypatch.setattr(Hopes, "of", closely)
    monkeypatch.setattr(Hopes, "found", lambda *_: True)
    monkeypatch.setattr(Hopes, "lose", lambda *_: None)
    assert decisions(told) == quick
    assert looked > jobs


def test_the_benchmark_tells_its_times_and_the_digest(
    loads: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del loads  # only the path
    monkeypatch.setattr("sys.argv", ["queue_sizes.py", "--jobs", "50", "--nodes", "1"])
    benchmark: ModuleType = importlib.import_module("queue_sizes")
    benchmark.main()
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["finished"] == 50
    assert len(report["digest"]) == len(report["decided"]) == 32
    assert report["cpu_s"] > 0
