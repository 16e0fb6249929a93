"""A tenant's word about its work is believed as far as the driver bears it out."""

import pytest

from alnair.sharing.belief import BUDGET, Belief, believed, prove
from alnair.sharing.rates import TenantDemand, grant, neighbours

LIAR = TenantDemand(0.3, soft=True, held_back=True, used=1.0, used_long=1.0, pressed=1.0)


def after(*looks: tuple[float, float | None]) -> Belief:
    """The belief after looks a second apart: GPU seconds claimed, share measured."""
    belief = Belief()
    for claimed, measured in looks:
        belief = prove(belief, claimed=claimed, told=claimed, measured=measured, seconds=1.0)
    return belief


def test_who_claims_what_nobody_sees_is_doubted_after_its_budget() -> None:
    assert not after(*[(1.0, 0.0)] * 4).is_doubted
    assert after(*[(1.0, 0.0)] * 6).is_doubted


def test_who_wakes_and_works_is_never_doubted_though_the_driver_is_late() -> None:
    belief = Belief()
    for _ in range(600):
        for claimed, measured in ((1.0, 0.0), (1.0, 0.4), (1.0, 0.9), (0.4, 1.0), (0.0, 0.3)):
            belief = prove(belief, claimed=claimed, told=claimed, measured=measured, seconds=1.0)
            assert not belief.is_doubted


def test_overlapping_streams_charged_fourfold_at_first_are_not_doubted() -> None:
    belief = after(*[(0.5, 0.125)] * 4, *[(0.5, 0.5)] * 60)
    assert not belief.is_doubted


def test_where_nothing_is_measured_all_is_believed() -> None:
    assert after(*[(1.0, None)] * 60) == Belief()


def test_a_doubted_tenant_takes_no_lending_but_has_its_share() -> None:
    honest = TenantDemand(0.3, soft=True, held_back=True, used=0.3)
    told = {"liar": LIAR, "honest": honest}
    assert grant(told)["honest"] == pytest.approx(0.5)
    belief = after(*[(1.0, 0.0)] * 20)
    granted = grant({"liar": believed(LIAR, belief), "honest": honest})
    assert granted["honest"] >= 0.69, "the liar keeps its share, and nobody uses it"
    assert granted["liar"] >= 0.3
    assert neighbours("honest", {"liar": believed(LIAR, belief), "honest": honest})[1] <= 0.01


def test_a_hard_tenant_is_believed_to_use_its_share_at_most() -> None:
    told = TenantDemand(0.2, used=40.0)
    assert neighbours("x", {"hard": believed(told, Belief())})[1] == 0.2


def test_lies_in_turns_with_the_truth_gain_no_more_than_the_room_to_grow() -> None:
    """An hour: two seconds of real use, then claims until it is doubted."""
    belief, unproven = Belief(), 0.0
    for second in range(3600):
        is_real = second % 60 < 2
        claimed = 0.3 if is_real else min(1.0, believed(LIAR, belief).wants)
        measured = 0.3 if is_real else 0.0
        belief = prove(belief, claimed=claimed, told=claimed, measured=measured, seconds=1.0)
        unproven += max(0.0, claimed - measured)
    assert unproven <= 0.05 * 3600, "a tenant that tells the truth has as much"


def test_what_was_lost_comes_back_slowly() -> None:
    belief = after(*[(1.0, 0.0)] * 10)
    for _ in range(int(BUDGET / 2 / 0.004) + 3):
        belief = prove(belief, claimed=0.0, told=0.0, measured=0.0, seconds=1.0)
    assert not belief.is_doubted


def told(*looks: tuple[float, float]) -> Belief:
    """The belief after looks a second apart: GPU seconds that its page tells of, share measured."""
    belief = Belief()
    for seconds, measured in looks:
        belief = prove(belief, claimed=0.3, told=seconds, measured=measured, seconds=1.0)
    return belief


def test_who_hides_its_work_counts_as_using_what_nvml_saw() -> None:
    """Its neighbours were granted what it seemed to leave, and had no turns beside it."""
    silent = TenantDemand(0.3, active=False)
    seen = believed(silent, told(*[(0.0, 0.3)] * 10))
    assert (seen.active, seen.used, seen.used_long) == (True, *[pytest.approx(0.3)] * 2)
    assert neighbours("x", {"hides": seen})[1] == 0.3
    # One word in three seconds hides nothing of the others.
    assert told(*[(0.9, 0.3), (0.0, 0.3), (0.0, 0.3), (0.0, 0.3), (0.0, 0.3)] * 10).found > 0


def test_what_a_page_hides_is_found_at_the_second_look_that_shows_it() -> None:
    """NVML may be two looks late, so the third is the first that can show it."""
    assert told(*[(0.0, 0.46)] * 3).found == 0.0
    assert told(*[(0.0, 0.46)] * 4).found == pytest.approx(0.46)


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([(1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)] * 20, id="NVML is late"),
        pytest.param([(0.8, 1.0)] * 60, id="its prices are too low"),
        pytest.param([(2.0, 1.0), (0.0, 1.0)] * 30, id="a kernel of two seconds"),
        pytest.param([(0.0, 1.0)] * 3 + [(1.0, 1.0)] * 30, id="it was there before the first look"),
    ],
)
def test_who_tells_what_it_does_hides_nothing(looks: list[tuple[float, float]]) -> None:
    assert told(*looks).found == 0.0


def test_who_hid_something_and_tells_the_truth_is_believed_again() -> None:
    hidden = [(0.0, 1.0)] * 10
    assert told(*hidden, *[(1.0, 1.0)] * 20).found > 0
    assert told(*hidden, *[(1.0, 1.0)] * 60).found == 0.0
