"""Sums over processes that come and go, out of slots that begin again at zero."""

from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.counters import DeviceUse, Slot
from alnair.node.vgpu.pages.totals import Totals

NO_CALLS = tuple((0, 0, 0) for _ in abi.Call)


def slot(charged_ns: int, owner: int = 7, calls: int = 0, index: int = 0) -> Slot:
    counted = ((calls, calls * 10, calls * 100), *NO_CALLS[1:])
    return Slot(index, owner, 1, 0, 0, (DeviceUse(charged_ns=charged_ns),), counted)


def summed(*looks: tuple[Slot, ...]) -> Totals:
    totals = Totals(1)
    for slots in looks:
        totals.add(slots)
    return totals


def test_growth_is_added_and_what_fell_began_again() -> None:
    totals = summed((slot(10, calls=1),), (slot(25, calls=3),), (slot(5, owner=8, calls=2),))
    assert totals.devices[0]["charged_ns"] == 30
    assert totals.calls[abi.Call.LAUNCH] == [5, 50, 500]


def test_what_is_settled_after_it_was_debited_is_not_counted_twice() -> None:
    looks = [(slot(charged),) for charged in (1000, 990, 1000, 995, 1010)]
    assert summed(*looks).devices[0]["charged_ns"] == 1010


def test_a_slot_that_was_freed_takes_nothing_away() -> None:
    totals = summed((slot(10),), (slot(0, owner=0),), (slot(0, owner=0),), (slot(3, owner=9),))
    assert totals.devices[0]["charged_ns"] == 13


def test_several_slots_are_summed() -> None:
    totals = summed((slot(10), slot(20, index=1)), (slot(11), slot(22, index=1)))
    assert totals.devices[0]["charged_ns"] == 33


def test_numbers_that_cannot_be_count_as_nothing() -> None:
    totals = summed((slot(10),), (slot(1 << 50),), (slot(20),), (slot(5, owner=8),))
    assert totals.devices[0]["charged_ns"] == 15
