"""What a pod will use of its GPUs, where that can be said."""

import numpy as np

from alnair.profiler.use_ahead import UseAhead


def told(percents: list[float], every: float = 30.0) -> UseAhead:
    made = UseAhead()
    for number, percent in enumerate(percents):
        made.add(number * every, percent)
    return made


def test_steady_work_is_foreseen_within_narrow_bounds() -> None:
    noise = np.random.default_rng(1).normal(0, 2, 480)
    found = told([60.0 + one for one in noise]).told()
    assert found is not None
    assert found.low <= 60 <= found.high
    assert found.high - found.low <= 10
    assert found.coverage >= 0.6


def test_what_may_be_anything_is_not_told() -> None:
    chance = np.random.default_rng(2)
    levels = np.repeat(chance.uniform(0, 100, 8), 60)
    assert told(list(levels)).told() is None


def test_of_too_short_a_past_or_after_a_pause_nothing_is_said() -> None:
    assert told([50.0] * 60).told() is None
    made = told([50.0] * 480)
    assert made.told() is not None
    made.add(480 * 30 + 5000, 50.0)
    assert made.told() is None
