"""Changes of level are found where they are, and nowhere else; against a plain full search."""

import itertools

import numpy as np
import pytest

from alnair.profiler.phases.change_points import change_points


def levels(chance: np.random.Generator, *parts: tuple[float, int], noise: float) -> np.ndarray:
    values = np.concatenate([np.full(length, level) for level, length in parts])
    return (values + chance.normal(0, noise, len(values)))[:, None]


@pytest.mark.parametrize("noise", [0.0, 1.0, 5.0])
def test_known_changes_are_found_to_a_sample(noise: float) -> None:
    chance = np.random.default_rng(1)
    series = levels(chance, (0, 40), (80, 200), (40, 30), (80, 100), (5, 30), noise=noise)
    found = change_points(series)
    assert len(found) == 4
    assert np.abs(np.array(found) - [40, 240, 270, 370]).max() <= 1


def test_a_change_in_one_of_several_features_is_found() -> None:
    chance = np.random.default_rng(2)
    still = chance.normal(0, 1, (300, 3))
    still[120:, 1] += 6
    assert change_points(still) == [120]


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_is_not_cut(seed: int) -> None:
    chance = np.random.default_rng(seed)
    assert change_points(chance.normal(50, 5, (600, 2))) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_is_the_best_of_all(seed: int) -> None:
    """Against every cut of a short series into up to three parts."""
    chance = np.random.default_rng(seed)
    series = levels(chance, (0, 8), (9, 7), (3, 9), noise=1.0)
    from alnair.profiler.phases.change_points import _PENALTY, _noise

    scaled = series / _noise(series)

    def cost(cut: tuple[int, ...]) -> float:
        parts = np.split(scaled[:, 0], cut)
        spread = sum(((part - part.mean()) ** 2).sum() for part in parts)
        return spread + len(cut) * _PENALTY * 2 * np.log(len(series))

    cuts = [()] + [(i,) for i in range(2, 23)]
    cuts += [(i, j) for i, j in itertools.combinations(range(2, 23), 2) if j - i >= 2]
    found = tuple(change_points(series))
    assert len(found) <= 2
    assert cost(found) == pytest.approx(min(map(cost, cuts)))


def test_a_part_has_its_least_length() -> None:
    series = np.zeros((60, 1))
    series[30] = 100
    bounds = [0, *change_points(series, least=5), 60]
    assert min(np.diff(bounds)) >= 5


@pytest.mark.parametrize("series", [np.zeros((0, 1)), np.zeros((3, 1)), np.full((50, 2), 7.0)])
def test_nothing_is_found_in_what_is_short_or_flat(series: np.ndarray) -> None:
    assert change_points(series) == []
