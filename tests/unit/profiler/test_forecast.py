"""Forecasts hold as often as they say, on loads that they have not seen; and say so honestly."""

from collections.abc import Callable

import numpy as np
import pytest

from alnair.profiler.even_grid import Refusal
from alnair.profiler.forecast import Forecast, forecast

STEP = 60.0
HOUR = 60  # samples

Load = Callable[[int, np.random.Generator], np.ndarray]


def steady(count: int, chance: np.random.Generator) -> np.ndarray:
    return 60 + chance.normal(0, 5, count)


def wandering(count: int, chance: np.random.Generator) -> np.ndarray:
    values = np.empty(count)
    level = 0.0
    for i in range(count):
        level = 0.99 * level + chance.normal(0, 1)
        values[i] = 50 + 3 * level
    return values


def daily(count: int, chance: np.random.Generator) -> np.ndarray:
    wave = np.sin(np.arange(count) / 1440 * 2 * np.pi + chance.uniform(0, 6.3))
    return 50 + 40 * wave + chance.normal(0, 3, count)


def leaking(count: int, chance: np.random.Generator) -> np.ndarray:
    return 1000 + chance.uniform(1, 3) * np.arange(count) + chance.normal(0, 20, count)


def bursting(count: int, chance: np.random.Generator) -> np.ndarray:
    return np.where(chance.random(count) < 0.02, chance.exponential(30, count), 2.0)


def in_epochs(count: int, chance: np.random.Generator) -> np.ndarray:
    """A training: its memory grows at each evaluation, every 47 minutes."""
    minutes = np.arange(count) + chance.integers(47)
    return np.where(minutes % 47 < 5, 30_000.0, 20_000.0) + chance.normal(0, 50, count)


LOADS: list[Load] = [steady, wandering, daily, leaking, bursting, in_epochs]


def told(values: np.ndarray, **options: float) -> Forecast:
    found = forecast(np.arange(len(values)) * STEP, values, **options)
    assert isinstance(found, Forecast)
    return found


@pytest.mark.parametrize("hours", [24, 72])
@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_bounds_hold_as_often_as_they_say_on_hours_not_seen(hours: int, coverage: float) -> None:
    below, between = [], []
    for number, load in enumerate(LOADS):
        for one in range(40):
            values = load((hours + 1) * HOUR, np.random.default_rng((9, number, one)))
            found = told(values[: hours * HOUR], coverage=coverage)
            assert found.coverage == pytest.approx(coverage)
            to_come = values[hours * HOUR :]
            below.append(to_come.max() <= found.most)
            between.append(found.mean_low <= to_come.mean() <= found.mean_high)
    assert np.mean(below) >= coverage - 0.03
    assert np.mean(between) >= coverage - 0.03


def test_a_bound_is_not_the_largest_value_ever() -> None:
    """Else it would hold, and be of no use: here it wastes less than a rise of the whole day."""
    wastes, rises = [], []
    for one in range(30):
        values = daily(73 * HOUR, np.random.default_rng((10, one)))
        found = told(values[: 72 * HOUR])
        wastes.append(found.most - values[72 * HOUR :].max())
        rises.append(values.max() - values[72 * HOUR :].max())
    assert np.mean(wastes) < 0.6 * np.mean(rises)


def test_a_short_past_promises_less() -> None:
    values = steady(4 * HOUR, np.random.default_rng(1))
    assert told(values).coverage == pytest.approx(3 / 4)
    assert told(values[: 2 * HOUR]).coverage == pytest.approx(1 / 2)


def test_a_past_shorter_than_twice_the_horizon_is_refused() -> None:
    found = forecast(np.arange(100) * STEP, np.ones(100))
    assert isinstance(found, Refusal)
    assert found.reason == ("6000 s of samples are too few to foresee 3600 s: twice that is needed")


def test_another_horizon_can_be_asked_for() -> None:
    values = steady(4 * HOUR, np.random.default_rng(2))
    found = told(values, horizon_s=600)
    assert (found.horizon_s, found.coverage) == (600, 0.9)


def test_no_bound_is_above_the_limit() -> None:
    found = told(90 + 9 * np.sin(np.arange(20 * HOUR)), limit=100)
    assert found.most <= 100
    assert found.mean_high <= 100


def test_a_load_that_never_changes_is_foreseen_exactly() -> None:
    found = told(np.full(10 * HOUR, 512.0))
    assert (found.most, found.mean_low, found.mean_high) == (512, 512, 512)


@pytest.mark.parametrize("options", [{"coverage": 1.0}, {"coverage": 0.0}, {"horizon_s": 0.0}])
def test_what_cannot_be_asked_is_an_error(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="coverage"):
        told(np.ones(1000), **options)
