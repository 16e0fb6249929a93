"""What a container used in all, out of slots that come and go with its processes.

A slot counts upwards while its process lives and is zeroed for the next one. So growth is added,
and a number that fell began again at zero. What a process counted in the last 50 ms before its slot
was freed may be lost.
"""

from collections.abc import Sequence
from typing import Final

from alnair.node.vgpu import abi
from alnair.node.vgpu.counters import Slot

#: The counters of a GPU that only grow while a process lives.
GROWING: Final = ("charged_ns", "throttled_ns", "launches", "refused")
#: A growth above this in one look is nonsense that a tenant wrote; it counts as none.
MOST_GROWTH: Final = 1 << 46


class Totals:
    """Sums over all processes that a container has and had.

    Attributes:
        devices: Per GPU, the sums of `GROWING`.
        calls: Per API class, [calls, bytes, nanoseconds].
        unhooked: Calls of driver functions that the library does not know.
    """

    def __init__(self, rows: int) -> None:
        self.devices = [dict.fromkeys(GROWING, 0) for _ in range(rows)]
        self.calls = [[0, 0, 0] for _ in abi.Call]
        self.unhooked = 0
        self._last: dict[int, Slot] = {}

    def add(self, slots: Sequence[Slot]) -> None:
        """Take in the slots as they are now."""
        for slot in slots:
            last = self._last.get(slot.index)
            if last == slot:
                continue
            self._last[slot.index] = slot
            for row, device in enumerate(slot.devices):
                before = last.devices[row] if last is not None else None
                sums = self.devices[row]
                for name in GROWING:
                    now = getattr(device, name)
                    sums[name] += _growth(getattr(before, name) if before else 0, now)
            for index, now in enumerate(slot.calls):
                then = last.calls[index] if last is not None else (0, 0, 0)
                if now != then:
                    sums_of_calls = self.calls[index]
                    for part in range(3):
                        sums_of_calls[part] += _growth(then[part], now[part])
            self.unhooked += _growth(last.unhooked if last else 0, slot.unhooked)


def _growth(before: int, now: int) -> int:
    growth = now - before if now >= before else now
    return growth if growth < MOST_GROWTH else 0
