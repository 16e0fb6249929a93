"""The simulated writes of agents end when they are told to, with what they have by then."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).resolve().parents[4] / "benchmarks" / "lib" / "profiler_writes.py"


@pytest.fixture(scope="module")
def writing() -> ModuleType:
    """The module, which is no package's."""
    spec = importlib.util.spec_from_file_location("profiler_writes", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_who_must_end_has_the_figures_of_the_nodes_until_then(writing: ModuleType) -> None:
    seen: list[int] = []

    def go_on(done: int) -> bool:
        seen.append(done)
        return done < 2

    ended = writing.writes("mixed", 50, pods=5, seconds=600, go_on=go_on)
    assert seen == [1, 2]
    assert ended == writing.writes("mixed", 2, pods=5, seconds=600)
    assert (ended.nodes, ended.a_second_on_a_thousand) == (2, ended.a_second * 500)


@pytest.mark.parametrize(
    "mix", ["steady", "mixed", "trainings", "inference", "steps", "flips", "noise"]
)
def test_every_mix_is_held_by_the_agents_own_budget(writing: ModuleType, mix: str) -> None:
    found = writing.writes(mix, 4, seconds=1800)
    assert 0 <= found.a_second_on_a_thousand < 90, found
