"""Which errors make a GPU unhealthy, and what heals it."""

import pytest

from alnair.sharing.health import (
    GpuHealth,
    HealthRules,
    Severity,
    after_answer,
    after_xid,
    sentence,
    severity,
)

RULES = HealthRules(answers=3, seconds=10.0)
GOOD = GpuHealth()


def answered(state: GpuHealth, *times: float, opened: int = 1) -> GpuHealth:
    for now in times:
        state = after_answer(state, "", now=now, opened=opened, rules=RULES)
    return state


def lost(state: GpuHealth, now: float, opened: int = 1) -> GpuHealth:
    return after_answer(state, "GPU is lost", now=now, opened=opened, rules=RULES)


@pytest.mark.parametrize(
    ("grade", "xids"),
    [
        (Severity.PROGRAM, (13, 31, 43, 45, 68, 109, 69, 80, 154)),
        (Severity.PASSING, (63, 92, 94, 0, 145, 999)),
        (Severity.RESET, (48, 62, 64, 74, 79, 95, 119, 120, 140)),
    ],
)
def test_what_the_errors_say(grade: Severity, xids: tuple[int, ...]) -> None:
    assert {xid: severity(xid) for xid in xids} == dict.fromkeys(xids, grade)


def test_a_programs_error_says_nothing_about_the_gpu() -> None:
    assert after_xid(GOOD, 31, opened=1) == GOOD


def test_an_error_that_passes_is_forgotten_after_good_answers_over_a_while() -> None:
    bad = after_xid(GOOD, 94, opened=1)
    assert bad.reason == "XID 94: contained memory error"
    assert not answered(bad, 6, 7, 8, 9).is_healthy  # enough answers, too soon
    assert not answered(bad, 6, 30).is_healthy  # long enough, too few answers
    assert answered(bad, 6, 7, 16) == GOOD
    again = after_xid(answered(bad, 6, 7), 94, opened=1)
    assert not answered(again, 16, 17, 18).is_healthy, "the answers before the second do not count"


def test_a_gpu_that_does_not_answer_is_unhealthy_until_it_does_again() -> None:
    bad = lost(GOOD, 5.0)
    assert bad.reason == "GPU is lost"
    bad = lost(answered(bad, 6, 7), 8.0)
    assert not answered(bad, 16, 17).is_healthy, "in a row"
    assert answered(bad, 16, 17, 26) == GOOD


def test_an_error_that_needs_a_reset_is_not_forgotten_without_one() -> None:
    bad = after_xid(GOOD, 48, opened=1)
    assert not answered(bad, 6, 60, 600, 6000).is_healthy
    # Another GPU was lost, and NVML opened again for it: this one was never away.
    assert not answered(bad, 6, 60, 600, opened=2).is_healthy
    # It was away, and the same opening answers again: a handle that survived was not reset.
    assert not answered(lost(bad, 7.0), 8, 60, 600).is_healthy
    assert answered(lost(bad, 7.0), 8, 9, 18, opened=2) == GOOD


def test_a_second_grave_error_needs_a_second_reset() -> None:
    bad = lost(after_xid(GOOD, 48, opened=1), 6.0)
    bad = after_xid(answered(bad, 7, opened=2), 95, opened=2)
    assert bad.reason == "XID 48: double-bit ECC error"
    assert not answered(bad, 9, 10, 60, opened=2).is_healthy


def test_a_gpu_off_the_bus_is_healthy_once_it_answers_nvml_opened_anew() -> None:
    bad = lost(after_xid(lost(GOOD, 4.0), 79, opened=1), 6.0)
    assert bad.reason == "XID 79: the GPU has fallen off the bus"
    assert not answered(lost(bad, 60.0, opened=2), 61, 62, opened=2).is_healthy
    assert answered(lost(bad, 60.0, opened=2), 61, 62, 71, opened=3) == GOOD


def test_a_lesser_error_changes_nothing_of_a_graver_one() -> None:
    bad = lost(after_xid(GOOD, 64, opened=1), 6.0)
    lesser = after_xid(bad, 94, opened=2)
    assert (lesser.reason, lesser.needs_reset, lesser.was_away) == (bad.reason, True, True)


def test_an_unknown_error_is_named_by_its_number() -> None:
    assert sentence(999) == "XID 999"
