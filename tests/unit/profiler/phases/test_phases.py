"""The phases of jobs whose phases are known: to within two moments, and by their names."""

import itertools

import numpy as np
import pytest

from alnair.model import usage
from alnair.profiler.even_grid import Refusal
from alnair.profiler.phases.phases import Phases, phases

#: Of what a training is made: GPU utilisation low and high, cores, reading, writing.
LOOKS = {
    "start": ((0, 0), 0.9, 0.0, 0.0),
    "data loading": ((0, 0), 3.0, 200.0, 0.0),
    "training": ((20, 95), 2.0, 10.0, 0.0),
    "evaluation": ((50, 50), 2.0, 10.0, 0.0),
    "checkpoint": ((0, 0), 0.5, 0.0, 300.0),
    "idle": ((0, 0), 0.01, 0.0, 0.0),
}


def job(*parts: tuple[str, int], seed: int = 1) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Metrics of one second each, with noise; an iteration takes 6 s, and iterations are whole."""
    chance = np.random.default_rng(seed)
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for name, seconds in parts:
        (low, high), *others = LOOKS[name]
        columns[0].append(np.where(np.arange(seconds) % 6 < 4, high, low))
        for column, level in zip(columns[1:], others, strict=True):
            column.append(np.full(seconds, level))
    names = (usage.GPU_UTIL, usage.CPU_CORES, usage.IO_READ_MIB_S, usage.IO_WRITE_MIB_S)
    times = 1000.0 + np.arange(sum(seconds for _, seconds in parts))
    made = {}
    for name, column in zip(names, columns, strict=True):
        values = np.concatenate(column).astype(float)
        made[name] = times, np.maximum(0, values * (1 + chance.normal(0, 0.02, len(values))))
    return made


def told(metrics: dict) -> Phases:
    found = phases(metrics)
    assert isinstance(found, Phases)
    return found


WHOLE = (
    ("start", 42),
    ("data loading", 60),
    ("training", 240),
    ("evaluation", 48),
    ("training", 240),
    ("checkpoint", 30),
    ("training", 180),
    ("idle", 60),
)


@pytest.mark.parametrize("seed", range(5))
def test_a_whole_job_is_told_by_four_metrics(seed: int) -> None:
    found = told(job(*WHOLE, seed=seed))
    assert [one.name for one in found.phases] == [name for name, _ in WHOLE]
    ends = 1000 + np.cumsum([seconds for _, seconds in WHOLE])
    told_ends = np.array([one.end_s for one in found.phases])
    assert np.abs(told_ends - ends).max() <= 2 * found.resolution_s
    assert found.resolution_s == pytest.approx(6, rel=0.02)


def test_phases_follow_each_other_without_gaps() -> None:
    found = told(job(*WHOLE)).phases
    for one, later in itertools.pairwise(found):
        assert one.end_s == later.start_s
        assert one.name != later.name


def test_one_metric_tells_training_from_what_is_around_it() -> None:
    whole = job(("start", 60), ("training", 300), ("evaluation", 60), ("training", 300))
    found = told({usage.GPU_UTIL: whole[usage.GPU_UTIL]})
    assert [one.name for one in found.phases] == ["start", "training", "evaluation", "training"]


def test_a_rest_whose_cause_nothing_shows_is_a_pause() -> None:
    whole = job(("training", 300), ("checkpoint", 60), ("training", 300))
    found = told({usage.GPU_UTIL: whole[usage.GPU_UTIL]})
    assert [one.name for one in found.phases] == ["training", "pause", "training"]


def test_a_job_that_uses_nothing_is_idle() -> None:
    found = told(job(("idle", 200)))
    assert [one.name for one in found.phases] == ["idle"]
    assert found.phases[0].reason == "nothing is used"


def test_a_metric_of_any_name_and_unit_can_be_the_only_one() -> None:
    times, values = job(("start", 60), ("training", 400))[usage.GPU_UTIL]
    found = told({"value": (times, values * 1e6)})
    assert [one.name for one in found.phases] == ["start", "training"]


def test_metrics_without_a_common_time_are_refused() -> None:
    times = np.arange(50.0)
    found = phases({"a": (times, times), "b": (times + 100, times)})
    assert isinstance(found, Refusal)
    assert "in common" in found.reason


def test_a_refused_metric_is_named() -> None:
    found = phases({"a": (np.arange(3.0), np.arange(3.0))})
    assert isinstance(found, Refusal)
    assert found.reason.startswith("a: 3 samples")
