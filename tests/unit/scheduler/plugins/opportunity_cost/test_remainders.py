"""What is left of a scarce resource is worth what the pods that still fit make of it."""

import itertools

import numpy as np
import pytest

from alnair.scheduler.plugins.opportunity_cost.remainders import Remainders, weight

#: A GPU with 4 cores, a GPU with 16, no GPU with 16; as many of each.
PODS = ((4, 1.0, 10.0), (16, 1.0, 10.0), (16, 0.0, 10.0))
SCARCE = 2.0


@pytest.mark.parametrize(
    ("scarcity", "part"), [(0.0, 0), (0.8, 0), (1.0, 0), (1 / 0.98, 0.4), (1.1, 1), (9.0, 1)]
)
def test_remainders_count_as_far_as_the_resource_is_missing(scarcity: float, part: float) -> None:
    assert weight(scarcity) == pytest.approx(part)


def test_what_lasts_has_no_worth() -> None:
    assert not Remainders(PODS, 1.0).count
    assert Remainders(PODS, 1.01).count


def test_a_remainder_is_worth_the_gpus_of_pods_that_fit() -> None:
    left = Remainders(PODS, SCARCE)
    assert left.of_one(3.9) == 0.0, "nobody fits"
    assert left.of_one(15.9) == pytest.approx(12 / 4, rel=0.02), "a GPU for four cores"
    assert left.of_one(16) - left.of_one(15.99) < 0.1


def test_the_larger_a_remainder_the_less_is_another_core_worth() -> None:
    pods = [(cores, 1.0, 1.0) for cores in range(1, 33)]
    left = Remainders(pods, SCARCE)
    gains = [left.of_one(c + 1) - left.of_one(c) for c in range(1, 32)]
    assert all(one > other > 0 for one, other in itertools.pairwise(gains))


def test_beyond_the_largest_pod_the_worth_stays() -> None:
    left = Remainders(PODS, SCARCE)
    assert left.of_one(16) == left.of_one(1e18) > left.of_one(-4) == 0.0


def test_one_amount_is_worth_what_it_is_among_others() -> None:
    left = Remainders(PODS, SCARCE)
    amounts = np.array([-8.0, 0.0, 3.9, 4.0, 7.3, 15.999, 16.0, 1e30])
    assert left.of(amounts).tolist() == [left.of_one(a) for a in amounts.tolist()]


@pytest.mark.parametrize("pods", [(), ((0, 1.0, 5.0),)], ids=["no pods", "nobody asks for it"])
def test_nothing_asked_for_is_worth_nothing(pods: tuple[tuple[int, float, float], ...]) -> None:
    assert not Remainders(pods, SCARCE).count
