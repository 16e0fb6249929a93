"""Shares of a GPU's time: guarantees, borrowing, priorities, and the correction of prices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.sharing.rates import (
    LINGER_NS,
    PERIOD_NS,
    SCALES,
    SETTLING,
    YIELDED,
    Activity,
    Price,
    Reading,
    TenantDemand,
    grant,
    moved,
    neighbours,
    observe,
    weigh,
)
from alnair.sharing.turns import PRESSED

MS = 1_000_000
CASES: list[tuple[str, dict[str, TenantDemand], dict[str, float]]] = [
    (
        "a hard tenant alone has its share and no more",
        {"a": TenantDemand(0.3, held_back=True)},
        {"a": 0.3},
    ),
    ("a soft tenant alone has all", {"a": TenantDemand(0.3, soft=True, used=0.1)}, {"a": 1.0}),
    (
        "two that want all divide by their shares",
        {
            "a": TenantDemand(0.3, soft=True, held_back=True),
            "b": TenantDemand(0.7, soft=True, held_back=True),
        },
        {"a": 0.3, "b": 0.7},
    ),
    (
        "what is guaranteed to nobody is divided, too",
        {
            "a": TenantDemand(0.2, soft=True, held_back=True),
            "b": TenantDemand(0.3, soft=True, held_back=True),
        },
        {"a": 0.4, "b": 0.6},
    ),
    (
        "a sleeper keeps its guarantee, others may have all meanwhile",
        {
            "a": TenantDemand(0.5, soft=True, active=False),
            "b": TenantDemand(0.5, soft=True, held_back=True),
        },
        {"a": 0.5, "b": 1.0},
    ),
    (
        "what a hard tenant leaves is lent to a soft one",
        {"a": TenantDemand(0.5, used=0.2), "b": TenantDemand(0.5, soft=True, held_back=True)},
        {"a": 0.5, "b": 0.7},
    ),
    (
        "low yields while another works",
        {
            "a": TenantDemand(0.5, held_back=True),
            "b": TenantDemand(0.5, soft=True, low=True, held_back=True),
        },
        {"a": 0.5, "b": YIELDED},
    ),
    (
        "low has all while the other sleeps",
        {
            "a": TenantDemand(0.5, active=False),
            "b": TenantDemand(0.5, soft=True, low=True, held_back=True),
        },
        {"a": 0.5, "b": 1.0},
    ),
    (
        "low ones divide what they have among them",
        {
            "a": TenantDemand(0.5, soft=True, held_back=True),
            "b": TenantDemand(0.2, low=True),
            "c": TenantDemand(0.3, low=True),
        },
        {"a": 1.0, "b": YIELDED * 0.4, "c": YIELDED * 0.6},
    ),
]


@pytest.mark.parametrize(
    ("claims", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_grants(claims: dict[str, TenantDemand], expected: dict[str, float]) -> None:
    assert grant(claims) == pytest.approx(expected)


@st.composite
def tenants(draw: st.DrawFn) -> dict[str, TenantDemand]:
    parts = draw(st.lists(st.integers(1, 100), min_size=1, max_size=6))
    room = max(100, sum(parts))
    return {
        str(at): TenantDemand(
            part / room,
            soft=draw(st.booleans()),
            low=draw(st.booleans()),
            active=draw(st.booleans()),
            used=draw(st.floats(0, 1)),
            held_back=draw(st.booleans()),
        )
        for at, part in enumerate(parts)
    }


@given(tenants())
def test_nobody_is_granted_what_is_not_there_nor_less_than_its_guarantee(
    claims: dict[str, TenantDemand],
) -> None:
    shares = grant(claims)
    assert shares.keys() == claims.keys()
    yielding = any(claim.active and not claim.low for claim in claims.values())
    low = sum(share for name, share in shares.items() if claims[name].low)
    assert not yielding or low <= YIELDED + 1e-9
    used = sum(min(shares[name], claim.wants) for name, claim in claims.items() if claim.active)
    assert used <= 1 + (YIELDED if yielding else 0) + 1e-9
    for name, claim in claims.items():
        assert shares[name] <= 1 + 1e-9
        assert claim.soft or shares[name] <= claim.guaranteed + 1e-9
        assert (claim.low and yielding) or shares[name] >= claim.guaranteed - 1e-9


@given(tenants())
def test_a_gpu_with_a_soft_tenant_that_wants_more_is_granted_in_full(
    claims: dict[str, TenantDemand],
) -> None:
    hungry = [c for c in claims.values() if c.soft and c.active and c.held_back and not c.low]
    shares = grant(claims)
    if hungry:
        wanted = sum(
            min(shares[name], claim.wants) for name, claim in claims.items() if not claim.low
        )
        assert wanted >= 1 - 1e-9


def test_use_is_a_mean_of_readings_and_work_lingers() -> None:
    activity: Activity | None = None
    for tick in range(11):
        now = tick * 50 * MS
        activity = observe(activity, Reading(now, charged_ns=now // 4, launches=tick, waiting=0))
    assert activity is not None
    assert activity.used == pytest.approx(0.25, abs=0.01)
    worked = activity.last.now_ns
    for tick in range(11, 20):
        activity = observe(activity, Reading(tick * 50 * MS, worked // 4, 10, waiting=0))
    assert activity.worked_ns == worked
    assert activity.is_active(worked + LINGER_NS)
    assert not activity.is_active(worked + LINGER_NS + 1)


def test_two_looks_tell_who_began_to_want_more_than_its_share_and_one_does_not() -> None:
    """Turns come 0.1 s earlier than by a mean over half a second, of which most was before."""
    activity = observe(None, Reading(0, 0, 0, waiting=0))
    for tick in range(1, 60):
        activity = observe(activity, Reading(tick * 50 * MS, 0, 0, waiting=0))
    pressed, charged = [], []
    for tick in range(60, 70):
        reading = Reading(tick * 50 * MS, (tick - 59) * 20 * MS, tick, waiting=1)
        activity = observe(activity, reading)
        pressed.append(activity.pressed)
        charged.append(activity.used_long)
    assert pressed[0] < PRESSED < pressed[1]
    assert charged[9] > 0.85 * 0.4  # by the mean over half a second alone: 0.65


def test_use_of_the_last_period_of_turns_is_the_same_at_each_reading() -> None:
    """A window of 66 ms in each 220 is 0.3, though readings are no part of a period."""
    activity, window = None, PERIOD_NS * 3 // 10
    for tick in range(40):
        now = tick * 50 * MS
        charged = now // PERIOD_NS * window + min(now % PERIOD_NS, window)
        activity = observe(activity, Reading(now, charged, tick, waiting=1))
        if now >= PERIOD_NS:
            # A window's edge between two readings is told to a part of their distance only.
            assert activity.used_turn == pytest.approx(0.3, abs=0.06)
            assert len(activity.marks) <= 6
    activity = observe(activity, Reading(now + 10 * PERIOD_NS, charged, 40, waiting=0))
    assert activity.used_turn == 0.0


def test_a_waiting_thread_is_work_and_a_lost_slot_is_none() -> None:
    first = observe(None, Reading(0, 900, 9, waiting=1))
    assert first.is_active(0)
    assert first.held_back
    gone = observe(Activity(Reading(0, 900, 9, 0)), Reading(50 * MS, 0, 0, 0))
    assert (gone.used, gone.worked_ns) == (0.0, None)


def test_neighbours_are_the_others_that_work() -> None:
    claims = {
        "a": TenantDemand(0.2, used=0.2),
        "b": TenantDemand(0.3, used=0.3),
        "c": TenantDemand(0.5, active=False),
    }
    assert neighbours("a", claims) == (1, 0.3)
    assert neighbours("c", claims) == (2, 0.5)


def test_clients_of_mps_cut_no_kernels_of_one_another_and_are_one_to_all_others() -> None:
    client = TenantDemand(0.2, used=0.2, by_mps=True)
    demands = {"a": client, "b": client, "c": client, "outside": TenantDemand(0.4, used=0.3)}
    assert neighbours("a", demands) == (1, 0.3)
    assert neighbours("outside", demands) == (1, 0.6)
    assert neighbours("a", {"a": client, "b": client}) == (0, 0.0)


def test_prices_follow_the_driver_within_bounds_and_forget() -> None:
    price = Price(settling=0)
    assert price.scale == 1.0
    for _ in range(3):
        price = weigh(price, predicted=0.5, measured=0.4)
    assert price.scale == pytest.approx(0.8)
    for _ in range(30):
        price = weigh(price, predicted=0.5, measured=0.5)
    assert price.scale == pytest.approx(1.0, abs=0.01)
    assert weigh(Price(settling=0), predicted=0.05, measured=0.9).scale == 1.0
    assert weigh(Price(settling=0), predicted=0.1, measured=9.0).scale == SCALES[1]


def test_what_was_known_beside_others_is_forgotten_and_late_samples_are_left_out() -> None:
    price = Price(settling=0)
    for _ in range(3):
        price = weigh(price, predicted=0.5, measured=0.4)
    assert moved(price, frozenset()) is price
    price = moved(price, frozenset("ab"))
    assert price.scale == 1.0
    for _ in range(2):
        price = weigh(price, predicted=0.5, measured=0.3)
    assert price.scale == 1.0
    assert weigh(price, predicted=0.5, measured=0.5).scale == 1.0
    assert weigh(price, predicted=0.5, measured=0.4).scale == pytest.approx(0.8)


def test_one_measurement_says_little_when_turns_begin_and_six_say_most() -> None:
    """By a second with one long kernel less, a tenant paid a tenth too little for seconds."""
    price = moved(Price(settling=0), frozenset("ab"), 30)
    for _ in range(SETTLING):
        price = weigh(price, predicted=0.3, measured=0.27)
    scales = []
    for _ in range(6):
        price = weigh(price, predicted=0.3, measured=0.27)
        scales.append(price.scale)
    assert scales[0] > 0.96
    assert scales[-1] < 0.93
