"""Loans of memory: what is granted comes first, who asks is answered, nothing is lent twice."""

import random

import msgspec
import pytest

from alnair.sharing.loans import RESERVE, STEP, Tenant, lacking, lend, room, to_evict

MIB = 1 << 20
GIB = 1 << 30


def soft(granted: int = 8, held: int = 8, loan: int = 0, asked: int = 0) -> Tenant:
    """One that borrows; in GiB."""
    return Tenant(granted * GIB, held * GIB, True, loan * GIB, asked * GIB)


def test_slices_count_whole_used_or_not() -> None:
    tenants = {"a": soft(), "b": Tenant(40 * GIB)}
    assert room(80 * GIB, 0, tenants) == 32 * GIB - RESERVE
    assert room(80 * GIB, 2 * GIB, tenants) == 30 * GIB - RESERVE
    assert room(80 * GIB, -GIB, tenants) == 32 * GIB - RESERVE, "a look of another instant"
    assert room(80 * GIB, 0, tenants, claimed=30 * GIB) == 2 * GIB - RESERVE
    assert room(80 * GIB, 0, tenants, claimed=40 * GIB) == 0


def test_what_a_tenant_holds_beyond_its_slice_without_a_loan_is_not_lent() -> None:
    assert room(80 * GIB, 0, {"a": Tenant(40 * GIB, 42 * GIB)}) == 38 * GIB - RESERVE


def test_beside_a_tenant_without_a_limit_nothing_is_lent() -> None:
    assert room(80 * GIB, 0, {"a": soft(), "b": Tenant(0)}) == 0


def test_who_asks_has_it_in_steps() -> None:
    asked = Tenant(8 * GIB, 8 * GIB, True, 0, 300 * MIB)
    lent = lend(20 * GIB, {"a": asked})
    assert (lent.loans, lent.answered) == ({"a": 2 * STEP}, {"a"})
    lent = lend(400 * MIB, {"a": asked})
    assert lent.loans == {"a": 400 * MIB}
    lent = lend(200 * MIB, {"a": asked})
    assert (lent.loans, lent.answered) == ({"a": 0}, {"a"})


def test_who_does_not_ask_keeps_its_loan_while_nobody_needs_it() -> None:
    lent = lend(20 * GIB, {"a": soft(loan=4), "strict": Tenant(8 * GIB)})
    assert (lent.loans, lent.answered) == ({"a": 4 * GIB}, frozenset())


def test_who_borrowed_the_least_for_its_slice_comes_first() -> None:
    tenants = {"a": soft(loan=4, held=12, asked=3), "b": soft(granted=4, held=4, asked=3)}
    lent = lend(8 * GIB, tenants)
    assert lent.loans == {"a": 4 * GIB, "b": 4 * GIB - GIB}
    assert lent.answered == {"a", "b"}


def test_what_is_lent_and_not_used_goes_to_who_asks_a_tick_later() -> None:
    idle, asking = soft(held=9, loan=6), soft(asked=4)
    first = lend(8 * GIB, {"idle": idle, "asking": asking})
    assert (first.loans, first.answered) == ({"idle": GIB, "asking": 0}, frozenset())
    second = lend(8 * GIB, {"idle": soft(held=9, loan=1), "asking": asking})
    assert (second.loans, second.answered) == ({"idle": GIB, "asking": 4 * GIB}, {"asking"})
    # Unless an allocation under way took it meanwhile.
    taken = lend(8 * GIB, {"idle": soft(held=13, loan=1), "asking": asking})
    assert (taken.loans["asking"], taken.answered) == (0, {"asking"})


def test_what_who_asks_was_just_lent_is_not_taken_for_unused() -> None:
    waits = msgspec.structs.replace(soft(loan=4, asked=1), is_waiting=True)
    assert lend(8 * GIB, {"a": waits, "b": soft(asked=6)}).loans["a"] >= 4 * GIB
    # Unless it asks for ever.
    assert lend(8 * GIB, {"a": soft(loan=4, asked=9), "b": soft(asked=6)}).loans["a"] == 0


def test_growth_ends_when_an_owner_comes_and_loans_fall_with_what_is_held() -> None:
    for held, loan in ((14, 6), (11, 3), (8, 0), (4, 0)):
        lent = lend(2 * GIB, {"a": soft(held=held, loan=6, asked=1)})
        assert (lent.loans, lent.answered) == ({"a": loan * GIB}, {"a"})
    assert lend(2 * GIB, {"a": soft(held=14, loan=0)}).loans == {"a": 0}, "a loan that ran out"


def test_what_is_lacking_is_what_may_be_taken_beyond_the_room() -> None:
    tenants = {"a": soft(held=10, loan=6), "b": Tenant(8 * GIB, 9 * GIB)}
    assert lacking(4 * GIB, tenants) == 2 * GIB
    assert lacking(6 * GIB, tenants) == 0


def test_the_largest_borrowers_end_and_no_more_than_must() -> None:
    tenants = {"a": soft(held=10), "b": soft(held=14), "c": soft(held=9), "d": Tenant(9 * GIB)}
    assert to_evict(9 * GIB, tenants, frozenset()) == []
    assert to_evict(3 * GIB, tenants, frozenset()) == ["b"]
    assert to_evict(2 * GIB, tenants, frozenset()) == ["b", "a"]
    assert to_evict(0, tenants, frozenset()) == ["b", "a", "c"]
    assert to_evict(3 * GIB, tenants, frozenset({"b"})) == []
    assert to_evict(2 * GIB, tenants, frozenset({"b"})) == ["a"]


@pytest.mark.parametrize("seed", range(20))
def test_tenants_that_take_all_they_may_never_touch_what_was_granted(seed: int) -> None:
    """Allocations under way may still use the loans of the tick before."""
    chance = random.Random(seed)
    total = 80 * 1024
    slices = {name: chance.randint(1, 12) * 1024 for name in "abcde"}
    owner = 0
    held = dict.fromkeys(slices, 0)
    before = loans = dict.fromkeys(slices, 0)
    for _ in range(300):
        if chance.random() < 0.02:
            owner = 0 if owner else chance.randint(1, 15) * 1024
        asked = {}
        for name, own in slices.items():
            may = own + max(loans[name], before[name] if chance.random() < 0.5 else 0)
            if chance.random() < 0.4:
                held[name] = max(0, held[name] - chance.randint(0, 8 * 1024))
            elif held[name] < may:
                held[name] = chance.randint(held[name], may)
            asked[name] = chance.choice([0, chance.randint(1, 9 * 1024)])
        tenants = {
            n: Tenant(s * MIB, held[n] * MIB, True, loans[n] * MIB, asked[n] * MIB, bool(seed % 2))
            for n, s in slices.items()
        }
        there = room(total * MIB, 0, tenants, owner * MIB)
        before = loans
        lent = lend(there, tenants)
        loans = {name: bytes_ // MIB for name, bytes_ in lent.loans.items()}
        taken = sum(one.taken for one in tenants.values())
        # What anybody may hold at any moment until the next tick, by the old loans or the new.
        most = sum(max(tenants[n].borrowed, lent.loans[n]) for n in slices)
        assert most <= max(there, taken)
        if not lacking(there, tenants):
            assert sum(slices.values()) * MIB + owner * MIB + most + RESERVE <= total * MIB
