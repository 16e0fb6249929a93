"""Means over a window, and when a pod counts as idle."""

import pytest

from alnair.sharing.load import Course, PodLoad, sampled, together


def course(*utils: float, begin: float = 0.0, step: float = 1.0) -> Course:
    found = Course()
    for number, util in enumerate(utils):
        found = sampled(found, util, begin + number * step)
    return found


def test_the_mean_is_that_of_the_window() -> None:
    found = course(*[100.0] * 30, *[40.0] * 15)
    assert (found.mean, len(found.samples)) == (70.0, 30)
    assert course(20.0, 30.0).mean == 25.0
    assert Course().mean == 0.0


def test_the_window_grows_to_its_full_length() -> None:
    assert [course(*[1.0] * n).seconds for n in (0, 1, 11, 99)] == [0.0, 1.0, 10.0, 29.0]


@pytest.mark.parametrize(("util", "mean"), [(250.0, 100.0), (-3.0, 0.0)])
def test_what_cannot_be_is_cut(util: float, mean: float) -> None:
    assert course(util).mean == mean


def test_idle_is_who_did_nothing_for_a_minute() -> None:
    found = course(80.0, *[0.9] * 60)
    assert found.idle_for(60.0) is None
    assert found.idle_for(61.0) == 60.0
    assert sampled(found, 1.0, 61.0).idle_for(61.0) is None


def test_a_gap_proves_nothing() -> None:
    found = course(*[0.0] * 120)
    assert found.idle_for(119.0) == 119.0
    assert not found.is_fresh(125.0)
    later = sampled(found, 0.0, 125.0)
    assert (later.samples, later.idle_for(125.0)) == (((125.0, 0.0),), None)


def test_a_pod_is_idle_only_with_all_of_its_parts() -> None:
    quiet, longer, busy = course(*[0.0] * 99), course(*[0.0] * 119, begin=-20), course(*[50.0] * 99)
    assert together([quiet, longer], 98.0) == PodLoad(0.0, 98.0)
    assert together([quiet, busy], 98.0) == PodLoad(25.0, None)


def test_of_a_part_unknown_nothing_is_said() -> None:
    assert together([], 0.0) is None
    assert together([course(0.0), Course()], 0.0) is None
    assert together([course(0.0), course(0.0, begin=10.0)], 10.0) is None
