"""What a process leaves unsettled when it ends goes to its container's bucket."""

import time
from pathlib import Path

import pytest

from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.counters import CountersFile


def left_by(folder: Path, ago_ns: int | None, charged_ns: int = 0) -> int:
    """What the server finds that was left since then, as it frees the slot."""
    file = CountersFile(folder / "counters", 2)
    file.rebuild(1)
    page = abi.Counters()
    slot = page.slot[0]
    slot.owner, slot.started = 7, 42
    slot.device[1].charged_ns = charged_ns
    if ago_ns is not None:
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        slot.unsettled[1] = (now - ago_ns - charged_ns) % (1 << 64)
    with (folder / "counters").open("r+b") as out:
        out.seek(abi.HEAD_BYTES)
        out.write(bytes(page)[abi.HEAD_BYTES :][: abi.SLOT_BYTES])
    assert file.free([(0, 7, 42)]) == 1
    file.close()
    raw = (folder / "counters").read_bytes()
    after = abi.Counters.from_buffer_copy(raw)
    assert not any(after.slot[0].unsettled)
    assert after.bucket[0].left_ns == 0
    left: int = after.bucket[1].left_ns
    return left


def test_a_slot_that_is_freed_leaves_the_time_that_was_not_charged(tmp_path: Path) -> None:
    assert 2_000_000_000 <= left_by(tmp_path, 2_000_000_000, 500_000_000) <= 8_000_000_000


@pytest.mark.parametrize("ago_ns", [None, -3_600_000_000_000])
def test_who_has_settled_all_or_writes_nonsense_leaves_nothing(
    tmp_path: Path, ago_ns: int | None
) -> None:
    assert left_by(tmp_path, ago_ns) == 0


def test_no_more_than_a_bound_is_believed(tmp_path: Path) -> None:
    assert left_by(tmp_path, 60 * 10**9) == abi.LEFT_MOST_NS
