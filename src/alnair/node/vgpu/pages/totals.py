"""What a container used in all, out of slots that come and go with its processes.

A slot counts upwards while its process lives and is zeroed for the next one. GPU time is debited
before it is used and settled afterwards, so its count may fall a little; sums never do: growth is
what goes beyond the highest value so far. What a process counted in the last 50 ms before its slot
was freed may be lost.
"""

from collections.abc import Sequence
from typing import Final

from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.counters import Slot

#: The counters of a GPU that only grow while a process lives.
GROWING: Final = ("charged_ns", "throttled_ns", "launches", "refused")
#: A growth above this in one look is nonsense that a tenant wrote; it counts as none.
MOST_GROWTH: Final = 1 << 46


class _Marks:
    """The highest values of one slot's counters since this process has it."""

    def __init__(self, slot: Slot) -> None:
        self.owner = slot.owner, slot.started
        self.slot = slot
        self.devices = [dict.fromkeys(GROWING, 0) for _ in slot.devices]
        self.calls = [[0, 0, 0] for _ in abi.Call]
        self.unhooked = 0


class Totals:
    """Sums over all processes that a container has and had.

    Attributes:
        devices: Per GPU, the sums of `GROWING`.
        calls: Per API class, [calls, bytes, nanoseconds].
        uncounted: Classes that the library of a process did not count, as it is an older one.
        unhooked: Calls of driver functions that the library does not know.
    """

    def __init__(self, rows: int) -> None:
        self.devices = [dict.fromkeys(GROWING, 0) for _ in range(rows)]
        self.calls = [[0, 0, 0] for _ in abi.Call]
        self.unhooked = 0
        self.uncounted: frozenset[abi.Call] = frozenset()
        self._marks: dict[int, _Marks] = {}

    def add(self, slots: Sequence[Slot]) -> None:
        """Take in the slots as they are now."""
        for slot in slots:
            marks = self._marks.get(slot.index)
            if marks is None or marks.owner != (slot.owner, slot.started):
                marks = self._marks[slot.index] = _Marks(slot)
            elif marks.slot == slot:
                continue
            self._add(slot, marks)
            marks.slot = slot

    def _add(self, slot: Slot, marks: _Marks) -> None:
        for row, device in enumerate(slot.devices):
            sums, highest = self.devices[row], marks.devices[row]
            for name in GROWING:
                now = getattr(device, name)
                sums[name] += _growth(highest[name], now)
                highest[name] = max(highest[name], now)
        told = () if marks.slot is slot else marks.slot.calls
        for index, now_of_call in enumerate(slot.calls):
            if index < len(told) and told[index] == now_of_call:
                continue  # most classes, most of the time
            sums_of_call, highest_of_call = self.calls[index], marks.calls[index]
            for part, now in enumerate(now_of_call):
                sums_of_call[part] += _growth(highest_of_call[part], now)
                highest_of_call[part] = max(highest_of_call[part], now)
        # Its start is written last: before that, the slot does not say yet what is counted.
        if slot.owner and slot.started and len(slot.calls) < len(abi.Call):
            self.uncounted |= set(list(abi.Call)[len(slot.calls) :])
        self.unhooked += _growth(marks.unhooked, slot.unhooked)
        marks.unhooked = max(marks.unhooked, slot.unhooked)


def _growth(highest: int, now: int) -> int:
    growth = now - highest
    return growth if 0 < growth < MOST_GROWTH else 0
