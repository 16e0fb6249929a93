"""What a tenant owes by the driver's account, whatever its own says."""

import pytest

from alnair.sharing.accounts import ProcessAccount, entered
from alnair.sharing.debts import AHEAD, HOLD, MARGIN, MOST, Debt, inexact, owe, payable
from alnair.sharing.rates import Price, weigh


def test_who_keeps_to_its_grant_is_never_stopped() -> None:
    debt = Debt()
    for second in range(3600):
        debt = owe(debt, used=0.25 + 0.2 * (-1) ** second, granted=0.25, seconds=1.0)
        assert debt.hold == 0.0


def test_who_takes_more_is_stopped_until_the_mean_is_what_was_granted() -> None:
    debt, used, stopped = Debt(), 0.0, 0.0
    for _ in range(600):
        share = 1.0 - min(1.0, stopped)
        used += share
        debt = owe(debt, used=share, granted=0.25, seconds=1.0)
        stopped = debt.hold
    assert used / 600 <= 0.25 + MARGIN + 0.01


def test_a_grant_that_falls_makes_no_debt_of_what_was_used_before() -> None:
    debt = Debt()
    for _ in range(10):
        debt = owe(debt, used=1.0, granted=1.0, seconds=1.0)
    for used in (1.0, 1.0, 0.3, 0.3):
        debt = owe(debt, used=used, granted=0.3, seconds=1.0)
    assert debt.owed <= 0


def test_one_wrong_figure_stops_nobody_for_long() -> None:
    debt = owe(Debt(), used=1e6, granted=0.01, seconds=1.0)
    assert debt.owed == MOST
    assert debt.hold == HOLD
    assert inexact(2.0) == pytest.approx(0.25)
    assert inexact(0.9) == 0.0


def test_a_charge_that_was_never_granted_lowers_no_price() -> None:
    """The library obeys its price; its page says that it was charged a hundred times as much."""
    price, carried = Price(settling=0), 0.0
    for _ in range(600):
        measured = min(1.0, 0.25 / price.scale)
        paid, carried = payable(carried, 25.0, 0.25)
        price = weigh(price, predicted=paid / price.scale, measured=measured)
    assert measured <= 0.28


def test_a_long_kernel_that_is_charged_at_once_is_paid_over_the_time_that_it_waits() -> None:
    carried, paid = 0.0, []
    for second in range(20):
        now, carried = payable(carried, 5.0 if second == 0 else 0.0, 0.25)
        paid.append(now)
    assert sum(paid) == pytest.approx(5.0)
    assert max(paid) <= 0.25 + MARGIN + 1e-9
    assert AHEAD < 1


def account(*looks: tuple[float, float]) -> ProcessAccount:
    """After looks a second apart: GPU seconds charged, and used."""
    found = ProcessAccount()
    for charged, used in looks:
        found = entered(found, charged=charged, used=used, seconds=1.0)
    return found


@pytest.mark.parametrize(
    ("looks", "over", "under"),
    [
        ([(0.25, 0.25)] * 60, False, False),
        ([(0.5, 0.125)] * 120, False, False),
        ([(0.3, 0.0)] * 60, True, False),
        ([(0.0, 0.3)] * 60, False, True),
        ([(0.0, 0.02)] * 60, False, False),
    ],
    ids=["equal", "four streams", "claims work", "hides work", "idles"],
)
def test_two_accounts_contradict_each_other_by_many_times(
    looks: list[tuple[float, float]], over: bool, under: bool
) -> None:
    found = account(*looks)
    assert (found.is_overcharged, found.is_undercharged) == (over, under)
