"""What the driver charges beyond the ledger counts as used, once several samples agree."""

from alnair.sharing.corrections import STEP, Overhead, learn

MIB = 1 << 20
GIB = 1 << 30


def learned(*samples: tuple[int, int], limit: int = 8 * GIB) -> int:
    known = Overhead()
    for measured, ledger in samples:
        known = learn(known, measured=measured, ledger=ledger, limit=limit)
    return known.bytes


def test_a_difference_that_stays_is_learned_after_three_samples() -> None:
    sample = GIB + 100 * MIB, GIB
    assert learned(sample, sample) == 0
    assert learned(sample, sample, sample) == 100 * MIB


def test_an_allocation_in_flight_is_no_overhead() -> None:
    steady, late = (GIB, GIB), (3 * GIB, GIB)
    assert learned(steady, steady, late, steady, steady) == 0
    assert learned(late, late, steady, late, late) == 0


def test_a_large_difference_is_learned_in_steps() -> None:
    sample = 2 * GIB, GIB
    assert learned(*[sample] * 3) == STEP
    assert learned(*[sample] * 6) == GIB


def test_it_falls_at_once() -> None:
    high, low = (GIB + 200 * MIB, GIB), (GIB + 50 * MIB, GIB)
    assert learned(high, high, high, low) == 50 * MIB
    assert learned(high, high, high, (GIB, 2 * GIB)) == 0


def test_it_never_takes_more_than_half_of_a_limit() -> None:
    assert learned(*[(8 * GIB, 0)] * 50, limit=GIB) == GIB // 2
    assert learned(*[(8 * GIB, 0)] * 50, limit=0) == 0
