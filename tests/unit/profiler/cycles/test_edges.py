"""Single cycles are measured by their edges where those show, and not where they do not."""

import numpy as np
import pytest

from alnair.profiler.cycles.edges import median_between_edges
from alnair.profiler.even_grid import Grid, even


def grid(values: np.ndarray) -> Grid:
    found = even(np.arange(float(len(values))), values)
    assert isinstance(found, Grid)
    return found


def cycles(lengths: np.ndarray) -> np.ndarray:
    """Busy for 60 % of each cycle."""
    parts = [np.where(np.arange(length) < 0.6 * length, 90.0, 10.0) for length in lengths]
    return np.concatenate(parts)


@pytest.mark.parametrize("seed", range(5))
def test_a_few_disturbed_cycles_do_not_change_the_median(seed: int) -> None:
    chance = np.random.default_rng(seed)
    lengths = chance.integers(19, 22, 60)
    lengths[chance.choice(60, 8, replace=False)] = 37
    found = median_between_edges(grid(cycles(lengths)), 20.0)
    assert found == pytest.approx(20, rel=0.02)


def test_cycles_between_two_samples_are_averaged() -> None:
    lengths = np.tile([10, 11], 40)
    assert median_between_edges(grid(cycles(lengths)), 10.4) == pytest.approx(10.5, rel=0.03)


def test_noise_has_no_edges_a_cycle_apart() -> None:
    noise = np.random.default_rng(1).normal(50, 10, 800)
    assert median_between_edges(grid(noise), 40.0) is None


def test_of_cycles_of_two_lengths_one_is_told_and_nothing_between() -> None:
    busy_for_eight = [np.where(np.arange(length) < 8, 90.0, 10.0) for length in [16, 24] * 30]
    found = median_between_edges(grid(np.concatenate(busy_for_eight)), 20.0)
    assert found == pytest.approx(16, rel=0.05) or found == pytest.approx(24, rel=0.05)
