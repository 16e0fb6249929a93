"""Series become even grids; what was not seen stays so, and what says nothing is refused."""

import numpy as np
import pytest

from alnair.profiler.even_grid import Grid, Refusal, even


def grid(times: object, values: object) -> Grid:
    found = even(np.asarray(times, float), np.asarray(values, float))
    assert isinstance(found, Grid)
    return found


def test_even_samples_are_kept_as_they_are() -> None:
    found = grid(10 + 0.5 * np.arange(20), np.arange(20))
    assert (found.start, found.step) == (10, 0.5)
    assert found.values.tolist() == list(range(20))
    assert found.seen.all()


def test_jitter_is_taken_out_by_lines_between_samples() -> None:
    times = np.arange(100.0)
    times[1:-1] += np.random.default_rng(3).uniform(-0.3, 0.3, 98)
    found = grid(times, 2 * times)
    inner = found.times <= times[-1]
    np.testing.assert_allclose(found.values[inner], 2 * found.times[inner])


def test_a_gap_is_not_seen_and_nothing_is_made_up_for_it() -> None:
    times = np.r_[np.arange(20.0), np.arange(40.0, 60.0)]
    found = grid(times, times)
    assert len(found.values) == 60
    assert (~found.seen).sum() == 20
    assert set(found.values[~found.seen]) == {19.0}


def test_a_value_that_is_no_number_is_a_gap() -> None:
    values = np.ones(30)
    values[[4, 5, 6]] = np.nan, np.inf, np.nan
    found = grid(np.arange(30.0), values)
    assert np.isfinite(found.values).all()
    assert found.seen.sum() < 30


def test_two_samples_of_one_moment_count_once() -> None:
    assert len(grid(np.repeat(np.arange(20.0), 2), np.arange(40)).values) == 20


@pytest.mark.parametrize(
    ("times", "values", "why"),
    [
        (np.arange(5.0), np.ones(5), "5 samples are too few: 16 at least"),
        (np.zeros(40), np.ones(40), "1 sample is too few"),
        (np.arange(40.0), np.full(40, np.nan), "40 of 40 values are not numbers"),
        (np.r_[np.arange(30.0), 1e4], np.ones(31), "only 0% of the time was seen"),
    ],
)
def test_what_says_nothing_is_refused_with_the_reason(
    times: np.ndarray, values: np.ndarray, why: str
) -> None:
    found = even(times, values)
    assert isinstance(found, Refusal)
    assert why in found.reason


@pytest.mark.parametrize(
    ("times", "values"),
    [([0, 1], [1]), ([1, 0], [1, 1]), ([0, np.nan], [1, 1]), ([[0]], [[1]])],
)
def test_a_callers_mistake_is_an_error(times: list, values: list) -> None:
    with pytest.raises(ValueError, match="times"):
        even(np.array(times, float), np.array(values, float))
