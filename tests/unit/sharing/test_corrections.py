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


def credited(*samples: tuple[int, int], loaded: int, limit: int = 8 * GIB) -> list[int]:
    known, found = Overhead(), []
    for measured, ledger in samples:
        known = learn(known, measured=measured, ledger=ledger, limit=limit, loaded=loaded)
        found.append(known.credit)
        assert not (known.bytes and known.credit)
    return found


def test_what_the_driver_did_not_load_of_modules_is_credited_after_three_samples() -> None:
    lazy, all_loaded = (GIB, GIB + 100 * MIB), (GIB + 90 * MIB, GIB + 100 * MIB)
    assert credited(*[lazy] * 3, loaded=GIB) == [0, 0, 100 * MIB]
    assert credited(*[lazy] * 3, all_loaded, loaded=GIB)[-1] == 10 * MIB
    assert credited(*[lazy] * 3, (GIB + 101 * MIB, GIB + 100 * MIB), loaded=GIB)[-1] == 0


def test_no_more_is_credited_than_modules_are_charged_with() -> None:
    lazy = GIB, 3 * GIB
    assert credited(*[lazy] * 4, loaded=30 * MIB)[-1] == 30 * MIB
    assert credited(*[lazy] * 4, loaded=0)[-1] == 0
    assert credited(*[lazy] * 50, loaded=2 * GIB)[2:4] == [STEP, 2 * STEP]
    assert credited(*[lazy] * 50, loaded=2 * GIB, limit=GIB)[-1] == GIB // 2
