"""Turns: who takes them, and whose window becomes longer."""

import pytest

from alnair.sharing.rates import TenantDemand
from alnair.sharing.turns import COST, OWING, ROOMY, Turn, turns


def test_greedy_tenants_take_turns_that_fill_the_period() -> None:
    claims = {
        "a": TenantDemand(0.3, pressed=0.6, used_long=0.3),
        "b": TenantDemand(0.6, used_long=0.55),
        "c": TenantDemand(0.1, used=0.02, used_long=0.02),
    }
    found = turns(claims, {"a": 0.3, "b": 0.6, "c": 0.1})
    assert set(found) == {"a", "b"}
    assert sum(turn.length for turn in found.values()) == pytest.approx(1.0)
    assert found["b"].begin == pytest.approx(found["a"].length)
    assert found["a"].length == pytest.approx(1 / 3, abs=0.02)
    assert sum(turn.share for turn in found.values()) <= 0.9 + 1e-9


def test_one_greedy_tenant_alone_has_no_turns() -> None:
    claims = {"a": TenantDemand(0.5, pressed=1.0), "b": TenantDemand(0.5, used=0.1, used_long=0.1)}
    assert turns(claims, {"a": 0.5, "b": 0.5}) == {}


def test_nobody_takes_turns_with_one_that_has_no_limit() -> None:
    claims = {
        "a": TenantDemand(0.5, pressed=1.0),
        "b": TenantDemand(0.5, used_long=0.5, limited=False),
    }
    assert turns(claims, {"a": 0.5, "b": 0.5}) == {}


def test_a_window_grows_in_two_seconds_as_far_as_long_kernels_reach_into_it() -> None:
    """Of others: they take 20 ms of what it has in each period of 200."""
    granted, found = {"a": 0.3, "b": 0.7}, dict[str, Turn]()
    for _ in range(40):
        length = found["a"].length if found else 0.3
        claims = {
            "a": TenantDemand(0.3, pressed=1.0, used_turn=length - 0.1),
            "b": TenantDemand(0.7, pressed=1.0, used_turn=0.686),
        }
        found = turns(claims, granted, found)
    assert found["a"].length - 0.1 > 0.28


def test_a_window_stretches_for_who_falls_behind() -> None:
    claims = {
        "a": TenantDemand(0.5, pressed=1.0, used_turn=0.3),
        "b": TenantDemand(0.5, pressed=1.0, used_turn=0.5),
    }
    granted = {"a": 0.5, "b": 0.5}
    found = turns(claims, granted)
    assert found["a"].length == pytest.approx(found["b"].length)
    for _ in range(20):
        found = turns(claims, granted, found)
    assert found["a"].length > 0.53
    assert found["a"].share == pytest.approx(found["b"].share)
    for _ in range(1000):
        found = turns(claims, granted, found)
    assert found["b"].length > 0.19  # at least two fifths of its share, whatever another lacks


def test_what_turns_cost_makes_no_window_longer() -> None:
    """What all lack alike is nobody's window: half of it in equal parts, half by shares."""
    granted = {"a": 0.3, "b": 0.7}
    claims = {
        "a": TenantDemand(0.3, pressed=1.0, used_turn=0.3 - 0.4 * COST),
        "b": TenantDemand(0.7, pressed=1.0, used_turn=0.7 - 0.6 * COST),
    }
    found = turns(claims, granted)
    for _ in range(1000):
        found = turns(claims, granted, found)
    assert found["a"].length == pytest.approx(0.3)


def test_a_tenant_with_less_work_than_its_share_keeps_no_window_that_it_does_not_fill() -> None:
    """Requests that come at random wait for its window, and all of them have room in it."""
    granted, found = {"a": 0.3, "b": 0.7}, dict[str, Turn]()
    for _ in range(1000):
        rest = 1.0 - found["a"].length if found else 0.7
        claims = {
            "a": TenantDemand(0.3, pressed=0.6, used_long=0.24, used_turn=0.24, used_slow=0.24),
            "b": TenantDemand(0.7, pressed=1.0, used_turn=rest, used_slow=rest),
        }
        found = turns(claims, granted, found)
    assert found["a"].length <= 0.24 / ROOMY[0] + 0.01
    assert found["b"].length >= 0.68


def test_a_tenant_that_seems_to_use_nothing_takes_little_from_one_that_uses_its_share() -> None:
    """For its price is not known yet, or it hides its work: some seconds, until NVML tells."""
    granted, found, lengths = {"a": 0.3, "b": 0.7}, dict[str, Turn](), [0.7]
    for _ in range(200):
        claims = {
            "a": TenantDemand(0.3, pressed=1.0),
            "b": TenantDemand(0.7, pressed=1.0, used_turn=min(0.7, lengths[-1])),
        }
        found = turns(claims, granted, found)
        lengths.append(found["b"].length)
    assert min(lengths) > 0.55
    assert lengths[40] > 0.62
    assert lengths[200] > 0.66


def test_a_tenant_that_had_its_time_before_keeps_nobody_from_his() -> None:
    """It waits for what it owes, so a longer window would stand empty."""
    granted, found = {"a": 0.3, "b": 0.7}, dict[str, Turn]()
    for _ in range(40):
        claims = {
            "a": TenantDemand(0.3, pressed=1.0, owes=2 * OWING),
            "b": TenantDemand(0.7, pressed=1.0, used_turn=0.7, used_slow=0.7),
        }
        found = turns(claims, granted, found)
    assert found["b"].length == pytest.approx(0.7)
    claims["a"] = TenantDemand(0.3, pressed=1.0, owes=OWING)
    assert turns(claims, granted, found)["a"].extra > found["a"].extra
