"""Whom to put on a GPU together."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.pair_rates import PairRates
from alnair.profiler.packing import packing


def table(**speeds: float) -> PairRates:
    """Kinds a to d; `ab=0.9` is the speed of a beside b."""
    kinds = sorted({letter for pair in speeds for letter in pair})
    rows = tuple(tuple(speeds.get(one + other, 0.0) for other in kinds) for one in kinds)
    return PairRates(tuple(kinds), rows)


def test_pairs_are_told_by_what_they_do_together() -> None:
    found = packing(
        table(aa=0.5, ab=0.9, ba=0.8, ac=1.0, ca=0.2, bc=0.6, cb=0.3, bb=0.4, cc=0.99),
        [("b", "c"), ("a", "b")],
    )
    assert [(one.kinds, one.advice) for one in found.pairings] == [
        (("c", "c"), "share"),
        (("a", "b"), "share"),
        (("a", "c"), "never"),  # together they do much, at the cost of c
        (("a", "a"), "either"),
        (("b", "c"), "never"),
        (("b", "b"), "never"),
    ]


def test_what_rounds_disagree_about_is_told_as_unsure_and_not_recommended() -> None:
    rates = PairRates(("a", "b"), ((0, 0.7), (0.5, 0)), None, ((0, 0.1), (0.1, 0)))
    (found,) = packing(rates).pairings
    assert (found.advice, found.combined, found.spread) == ("unsure", 1.2, 0.141)
    assert packing(rates).best == (("a",), ("b",))
    surer = PairRates(rates.kinds, rates.rates, None, ((0, 0.02), (0.02, 0)))
    assert packing(surer).pairings[0].advice == "share"


def test_what_does_not_run_together_is_told_and_what_was_not_tried_is_not() -> None:
    found = packing(table(ab=0, ba=0, ac=0, ca=0), [("a", "b")])
    assert [(one.kinds, one.advice) for one in found.pairings] == [(("a", "b"), "unfit")]
    assert found.best == (("a",), ("b",), ("c",))
    assert found.per_gpu == 1.0


def test_the_best_matching_is_that_of_the_whole_and_not_of_the_best_pair() -> None:
    found = packing(table(ab=1, ba=1, ac=0.9, ca=0.9, bd=0.9, db=0.9, cd=0.6, dc=0.45))
    assert found.best == (("a", "c"), ("b", "d"))
    assert found.per_gpu == pytest.approx(1.8)


@given(st.lists(st.sampled_from([0.0, 0.3, 0.55, 0.7, 0.95]), min_size=36, max_size=36))
def test_no_matching_gains_more(rates: list[float]) -> None:
    kinds = "abcdef"
    rows = tuple(tuple(rates[6 * i : 6 * i + 6]) for i in range(6))
    found = packing(PairRates(tuple(kinds), rows))
    worth = {p.kinds: p.combined - 1 for p in found.pairings if p.advice in ("share", "either")}

    def most(left: str) -> float:
        options = [0.0]
        for one, other in combinations(left, 2):
            if worth.get((one, other), 0) > 0:
                rest = left.replace(one, "").replace(other, "")
                options.append(worth[one, other] + most(rest))
        return max(options)

    gained = sum(worth[one[0], one[1]] for one in found.best if len(one) == 2)
    assert gained == pytest.approx(most(kinds))
    assert sorted(kind for group in found.best for kind in group) == list(kinds)
