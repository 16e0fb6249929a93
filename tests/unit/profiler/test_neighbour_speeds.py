"""A training's own steps alone and beside others."""

import pytest

from alnair.profiler.neighbour_speeds import NeighbourSpeeds

OTHER = frozenset({"a/b"})


def test_steps_alone_and_beside_others_are_compared() -> None:
    speeds, done = NeighbourSpeeds(), 0.0
    for number in range(5):
        speeds.add(30.0 * number, done, frozenset(), 0.0)
        done += 30
    assert speeds.slowdown() is None
    for number in range(5, 10):
        speeds.add(30.0 * number, done, OTHER, 150.0)
        done += 20
    assert speeds.slowdown() == pytest.approx(1.5)


def test_a_stretch_in_which_somebody_came_counts_for_neither() -> None:
    speeds = NeighbourSpeeds()
    for number in range(8):
        speeds.add(30.0 * number, 10.0 * number, frozenset(), 0.0)
    for number in range(8, 16):
        speeds.add(30.0 * number, 5.0 * number, OTHER, 30.0 * number - 1)
    assert speeds.slowdown() is None


def test_other_neighbours_begin_anew_and_a_restart_is_no_step() -> None:
    speeds = NeighbourSpeeds()
    for number in range(5):
        speeds.add(30.0 * number, 30.0 * number, frozenset(), 0.0)
    for number in range(5, 10):
        speeds.add(30.0 * number, 15.0 * number + 75, OTHER, 0.0)
    assert speeds.slowdown() == pytest.approx(2.0)
    speeds.add(330.0, 0.0, frozenset({"c/d"}), 0.0)
    assert speeds.slowdown() is None
