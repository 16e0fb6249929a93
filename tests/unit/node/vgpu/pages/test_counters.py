"""Counters of libraries of another version than ours, and of tenants that write anything."""

from pathlib import Path

import pytest

from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.counters import MOST, CountersFile, Slot
from alnair.node.vgpu.pages.totals import Totals


def written(folder: Path, classes: int, counts: int) -> Slot:
    """The slot of a library that says it counts so many classes, and does."""
    page = abi.Counters(slots_used=1)
    slot = page.slot[0]
    slot.owner, slot.started, slot.classes = 7, 42, classes
    for number in range(counts):
        slot.calls[number].calls = number + 1
    file = CountersFile(folder / "counters", 1)
    file.rebuild(1)
    raw = bytes(page)
    with (folder / "counters").open("r+b") as out:
        out.seek(abi.offset(abi.Counters, "slots_used"))
        out.write(raw[abi.offset(abi.Counters, "slots_used") :][:8])
        out.seek(abi.HEAD_BYTES)
        out.write(raw[abi.HEAD_BYTES :][: abi.SLOT_BYTES])
    (found,) = file.read()
    file.close()
    return found


def use_written(folder: Path, **fields: int) -> tuple[Slot, ...]:
    """The slots of a file in which one process says this of its GPU."""
    page = abi.Counters(slots_used=1)
    page.slot[0].owner, page.slot[0].started = 7, 42
    page.slot[0].swapped[0] = fields.pop("swapped", 0)
    page.slot[0].asked[0] = fields.pop("asked", 0)
    for name, value in fields.items():
        setattr(page.slot[0].device[0], name, value)
    path, raw = folder / "counters", bytes(page)
    file = CountersFile(path, 1)
    file.rebuild(1)
    with path.open("r+b") as out:
        out.seek(abi.offset(abi.Counters, "slots_used"))
        out.write(raw[abi.offset(abi.Counters, "slots_used") :][:8])
        out.seek(abi.HEAD_BYTES)
        out.write(raw[abi.HEAD_BYTES :][: abi.SLOT_BYTES])
    found = file.read()
    file.close()
    return found


@pytest.mark.parametrize("days", [1, 13, 14, 1000])
def test_gpu_time_counts_for_as_long_as_a_process_lives(tmp_path: Path, days: int) -> None:
    since, second = days * 86_400 * 10**9, 10**9
    totals = Totals(1)
    for ns in (since, since + second):
        before = totals.devices[0].copy()
        totals.add(use_written(tmp_path, charged_ns=ns, throttled_ns=ns))
    grown = {name: now - before[name] for name, now in totals.devices[0].items()}
    assert grown == {"charged_ns": second, "throttled_ns": second, "launches": 0, "refused": 0}


def test_what_no_machine_has_counts_as_the_most_that_is_believed(tmp_path: Path) -> None:
    (slot,) = use_written(tmp_path, held=1 << 63, waiting=1 << 63, charged_ns=1 << 63)
    use = slot.devices[0]
    assert (use.held, use.waiting, use.charged_ns) == (MOST, MOST, 1 << 63)


@pytest.mark.parametrize(
    ("says", "read"), [(0, ()), (5, (5,)), (1 << 63, (MOST,))], ids=["none", "some", "nonsense"]
)
def test_memory_beyond_the_slice_is_read_beside_that_of_the_gpu(
    tmp_path: Path, says: int, read: tuple[int, ...]
) -> None:
    (slot,) = use_written(tmp_path, swapped=says, held=7)
    assert (slot.swapped, slot.devices[0].held, slot.asked) == (read, 7, ())
    (slot,) = use_written(tmp_path, asked=says, held=7)
    assert (slot.asked, slot.devices[0].held, slot.swapped) == (read, 7, ())


@pytest.mark.parametrize(
    ("classes", "counts", "known"),
    [
        (0, abi.COUNTED_BEFORE, abi.COUNTED_BEFORE),  # the library before this one
        (abi.COUNTED, abi.COUNTED, len(abi.Call)),
        (abi.COUNTED + 3, abi.CLASSES, len(abi.Call)),  # the one after it
        (2**64 - 1, abi.CLASSES, len(abi.Call)),
    ],
)
def test_classes_that_both_know_are_read(
    tmp_path: Path, classes: int, counts: int, known: int
) -> None:
    found = written(tmp_path, classes, counts)
    assert [one[0] for one in found.calls] == list(range(1, known + 1))


def test_what_an_older_library_does_not_count_is_unknown_and_not_nothing(tmp_path: Path) -> None:
    totals = Totals(1)
    totals.add([written(tmp_path, 0, abi.COUNTED_BEFORE)])
    assert totals.uncounted == {abi.Call.GRAPH, abi.Call.EVENT, abi.Call.MODULE}
    assert totals.calls[abi.Call.OTHER][0] == 10
    assert totals.calls[abi.Call.GRAPH][0] == 0


def test_our_own_library_counts_all(tmp_path: Path) -> None:
    totals = Totals(1)
    totals.add([written(tmp_path, abi.COUNTED, abi.COUNTED)])
    assert totals.uncounted == frozenset()
    assert len(abi.Call) == abi.COUNTED


def test_a_slot_that_is_just_being_claimed_says_nothing_of_classes() -> None:
    totals = Totals(1)
    totals.add([Slot(0, 7, 0, 0, 0, (), ((0, 0, 0),) * abi.COUNTED_BEFORE)])
    assert totals.uncounted == frozenset()


def test_the_time_at_which_a_container_has_earned_what_it_was_charged_is_its_gpus_own(
    tmp_path: Path,
) -> None:
    page, path = abi.Counters(), tmp_path / "counters"
    page.bucket[0].tat_ns, page.bucket[1].tat_ns = 5, (1 << 64) - 1
    file = CountersFile(path, 2)
    file.rebuild(1)
    assert [file.earned_ns(row) for row in (0, 1)] == [0, 0], "nothing was read yet"
    with path.open("r+b") as out:
        out.seek(abi.offset(abi.Counters, "bucket"))
        out.write(bytes(page)[abi.offset(abi.Counters, "bucket") :][: 2 * abi.BUCKET_BYTES])
    file.read()
    assert [file.earned_ns(row) for row in (0, 1)] == [5, (1 << 64) - 1]
    file.close()
