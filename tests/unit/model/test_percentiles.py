"""Percentiles by nearest rank."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.percentiles import nearest_rank


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, None),
        ([7.0], 99, 7.0),
        ([1.0, 2.0], 50, 1.0),
        ([1.0, 2.0, 3.0, 4.0], 50, 2.0),
        ([1.0, 2.0], 99, 2.0),
        ([1.0, 2.0], 0, 1.0),
        ([1.0, 2.0], 100, 2.0),
        # The example of the definition's source.
        ([15.0, 20.0, 35.0, 40.0, 50.0], 30, 20.0),
        # 0.07 * 100 is a little more than 7 as a float.
        ([float(i) for i in range(1, 101)], 7, 7.0),
    ],
)
def test_percentiles_are_nearest_ranks(
    values: list[float], percent: int, expected: float | None
) -> None:
    assert nearest_rank(values, percent) == expected


@given(values=st.lists(st.floats(-9, 9), min_size=1).map(sorted), percent=st.integers(0, 100))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(
    values: list[float], percent: int
) -> None:
    needed = max(1, math.ceil(Fraction(percent, 100) * len(values)))
    enough = [v for v in values if sum(w <= v for w in values) >= needed]
    assert nearest_rank(values, percent) == min(enough)
