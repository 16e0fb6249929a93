"""Speeds of pairs from rounds."""

import pytest

from alnair.profiler.pair_speeds import Round, summarise


def test_each_round_is_compared_with_itself_so_that_drift_is_no_interference() -> None:
    # The machine gets twice as slow; beside the other, the first keeps 0.5 and the second 0.8.
    found = summarise(
        [Round((10, 4), (5, 3.2)), Round((8, 3), (4, 2.4)), Round((5, 2), (2.5, 1.6))]
    )
    assert (found.first.speed, found.second.speed) == (0.5, pytest.approx(0.8))
    assert (found.first.spread, found.combined) == (0, pytest.approx(1.3))
    assert (found.first.alone, found.first.together, found.rounds) == (8, 4, 3)


def test_a_speed_is_at_most_that_of_being_alone_and_its_spread_is_told() -> None:
    found = summarise(
        [Round((10, 10), (10.4, 9)), Round((10, 10), (10.2, 8)), Round((10, 10), (9, 7))]
    )
    assert (found.first.speed, found.second.speed) == (1.0, 0.8)
    assert found.first.spread == pytest.approx(0.07)
