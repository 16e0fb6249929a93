"""Cycles are found at any rate, in noise, with gaps and breaks; and not where there are none."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from alnair.profiler.cycles.detection import Cyclicity, detect
from alnair.profiler.even_grid import Refusal

FILE = Path(__file__).resolve().parents[4] / "benchmarks" / "lib" / "load_shapes.py"


@pytest.fixture(scope="module")
def shapes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("load_shapes", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["load_shapes"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def found(times: np.ndarray, values: np.ndarray) -> Cyclicity:
    answer = detect(times, values)
    assert isinstance(answer, Cyclicity)
    return answer


def square(times: np.ndarray, period: float) -> np.ndarray:
    return np.where(times / period % 1 < 0.6, 90.0, 10.0)


@pytest.mark.parametrize(("seconds", "share"), [(120, 0.90), (600, 0.95)])
def test_made_up_trainings_show_their_period(
    shapes: ModuleType, seconds: int, share: float
) -> None:
    right = []
    for number, kind in enumerate(shapes.CYCLIC):
        for one in range(6):
            made = shapes.cyclic(kind, seconds, np.random.default_rng((77, number, one)))
            period = found(made.times, made.values).period_s
            right.append(period is not None and abs(period / made.period_s - 1) < 0.05)
    assert np.mean(right) >= share


@pytest.mark.parametrize("seconds", [120, 600])
def test_what_is_no_training_shows_no_period(shapes: ModuleType, seconds: int) -> None:
    alarms = []
    for number, kind in enumerate(shapes.OTHERS):
        for one in range(7):
            made = shapes.other(kind, seconds, np.random.default_rng((78, number, one)))
            alarms.append(found(made.times, made.values).cyclic)
    assert len(alarms) > 50
    assert np.mean(alarms) <= 0.02


@pytest.mark.parametrize("rate", [0.02, 1.0, 10.0, 1000.0])
def test_the_rate_of_samples_does_not_matter(rate: float) -> None:
    times = np.arange(400) / rate + 1e6
    answer = found(times, square(times - 1e6, 17.3 / rate))
    assert answer.period_s == pytest.approx(17.3 / rate, rel=0.01)
    assert answer.confidence > 0.9


def test_a_period_between_two_samples_is_found() -> None:
    times = np.arange(300.0)
    fine = np.arange(300 * 20) / 20
    means = square(fine, 2.6).reshape(300, 20).mean(axis=1)
    assert found(times, means).period_s == pytest.approx(2.6, rel=0.005)


def test_gaps_and_jitter_do_not_hide_a_cycle() -> None:
    chance = np.random.default_rng(5)
    times = np.sort(np.arange(500.0) + chance.uniform(-0.3, 0.3, 500))
    kept = chance.random(500) > 0.1
    kept[200:260] = False
    answer = found(times[kept], square(times[kept], 12.4))
    assert answer.period_s == pytest.approx(12.4, rel=0.01)


def test_iterations_that_come_to_take_twice_as_long_are_one_cycle() -> None:
    lengths = np.r_[np.full(40, 10.0), np.linspace(10, 20, 12)]
    starts = np.r_[0.0, np.cumsum(lengths)]
    times = np.arange(starts[-1])
    at = np.searchsorted(starts, times, side="right") - 1
    phase = (times - starts[at]) / lengths[at]
    answer = found(times, np.where(phase < 0.5, 90.0, 10.0))
    assert answer.period_s == pytest.approx(10, rel=0.03)


def test_evaluations_that_repeat_are_not_taken_for_the_iteration() -> None:
    times = np.arange(900.0)
    values = np.where(times % 90 < 15, 40.0, square(times % 90 - 15, 5.0))
    assert found(times, values).period_s == pytest.approx(5, rel=0.01)


def test_a_level_and_scale_change_nothing() -> None:
    times = np.arange(200.0)
    values = square(times, 9.0)
    percent, bytes_ = found(times, values), found(times, 3e10 + 1e7 * values)
    assert percent.period_s == pytest.approx(bytes_.period_s, rel=1e-6)


@pytest.mark.parametrize("level", [0.0, 1e-300, 97.0, 1e12])
def test_a_flat_series_is_not_cyclic_and_says_why(level: float) -> None:
    answer = found(np.arange(100.0), np.full(100, level))
    assert not answer.cyclic
    assert answer.period_s is None
    assert answer.reason == "it is flat: all values are the same"


def test_three_repetitions_are_too_few_to_tell() -> None:
    times = np.arange(100.0)
    answer = found(times, square(times, 31.0))
    assert not answer.cyclic
    assert "too few to tell" in answer.reason


def test_a_short_series_is_refused() -> None:
    assert isinstance(detect(np.arange(10.0), np.ones(10)), Refusal)
