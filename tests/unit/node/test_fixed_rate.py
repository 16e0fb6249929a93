"""Beats neither drift nor pile up."""

import pytest

from alnair.node.fixed_rate import FixedRate


def test_work_of_any_length_below_a_beat_does_not_move_the_next() -> None:
    rate, now, beats = FixedRate(1.0, 100.0), 100.0, []
    for work in (0.1, 0.9, 0.0, 0.5):
        now += work
        now += rate.rest(now)
        beats.append(now)
    assert beats == pytest.approx([101.0, 102.0, 103.0, 104.0])
    assert rate.skipped == 0


def test_beats_that_are_missed_are_counted_and_not_made_up_for() -> None:
    rate = FixedRate(1.0, 100.0)
    assert rate.rest(103.4) == pytest.approx(0.6)
    assert rate.skipped == 3
    assert rate.rest(104.2) == pytest.approx(0.8)
    assert rate.skipped == 3


def test_a_beat_that_is_due_right_now_is_not_missed() -> None:
    rate = FixedRate(0.5, 0.0)
    assert (rate.rest(0.5), rate.skipped) == (0.0, 0)
