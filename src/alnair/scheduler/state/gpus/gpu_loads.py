"""Measured loads of GPUs as columns, and what is expected of pods that no measurement shows yet.

A measurement counts as long as the agent that made it lives: it renews a lease, so a steady GPU is
never stale and a dead agent is. Without a lease, a measurement counts for a short time.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import numpy as np

from alnair.model.nodes import Gpu, GpuLoad
from alnair.scheduler.state.nodes.columns import Column, Rows

#: Nothing is known of the GPU.
UNKNOWN: Final = -1.0
#: Seconds after its last renewal that an agent counts as dead. Source: design, 4 (renewed every
#: 10 s).
LEASE_SECONDS: Final = 40.0
#: Seconds that a measurement counts without a lease.
HEARTBEAT_SECONDS: Final = 30.0
#: Seconds until a pod's use shows in what is measured: it starts, and the window fills.
SETTLE_SECONDS: Final = 60.0


class Loads:
    """GPUs by slot and row, as in the device table.

    Attributes:
        any: whether any node ever reported.
        util, memory: (slots, rows), percent of time and MiB in use as measured, `UNKNOWN` where
            nothing is, or nothing fresh.
        unseen_util, unseen_memory: (slots, rows), what pods placed in the last `SETTLE_SECONDS` are
            expected to add.
    """

    def __init__(self) -> None:
        self.any = False
        self._allocate((0, 0))
        self._reported: dict[int, tuple[tuple[Gpu, ...], tuple[GpuLoad, ...]]] = {}
        self._lease_of: dict[int, str] = {}
        self._rows_of: defaultdict[str, set[int]] = defaultdict(set)
        self._renewed: dict[str, float] = {}
        self._fresh: set[int] = set()
        #: When to look at a row again: its data may be stale by then.
        self._expiries: list[tuple[float, int]] = []
        #: Recent placements: when they count as measured, pod, row, slots, percent, MiB.
        self._recent: dict[str, tuple[float, int, tuple[int, ...], float, float]] = {}
        self._settling: list[tuple[float, str]] = []

    def _allocate(self, shape: tuple[int, int]) -> None:
        self.util: Column = np.full(shape, UNKNOWN)
        self.memory: Column = np.full(shape, UNKNOWN)
        self.unseen_util: Column = np.zeros(shape)
        self.unseen_memory: Column = np.zeros(shape)

    def grow(self, slots: int, rows: int) -> None:
        """Make room; existing entries keep their place."""
        old = self.util.shape
        slots, rows = max(slots, old[0]), max(rows, old[1])
        if (slots, rows) == old:
            return
        pad = ((0, slots - old[0]), (0, rows - old[1]))
        self.util = np.pad(self.util, pad, constant_values=UNKNOWN)
        self.memory = np.pad(self.memory, pad, constant_values=UNKNOWN)
        self.unseen_util = np.pad(self.unseen_util, pad)
        self.unseen_memory = np.pad(self.unseen_memory, pad)

    def describe(
        self, row: int, gpus: tuple[Gpu, ...], loads: tuple[GpuLoad, ...], lease: str, now: float
    ) -> None:
        """Set what is measured on a row; without loads, nothing is."""
        self.grow(len(gpus), row + 1)
        before = self._lease_of.pop(row, "")
        self._rows_of[before].discard(row)
        if loads:
            self.any = True
            self._reported[row] = gpus, loads
            self._lease_of[row] = lease
            self._rows_of[lease].add(row)
        else:
            self._reported.pop(row, None)
        self._show(row, now)

    def renew(self, lease: str, when: float, now: float) -> list[int]:
        """Note that an agent lives; returns the rows whose data became fresh by it."""
        self._renewed[lease] = max(when, self._renewed.get(lease, 0.0))
        return [
            row
            for row in self._rows_of.get(lease, ())
            if row not in self._fresh and self._show(row, now)
        ]

    def expect(
        self, uid: str, row: int, slots: Iterable[int], util: float, memory: float, when: float
    ) -> None:
        """Count on what a pod placed now will add to these GPUs."""
        if not util and not memory:
            return
        self.forget(uid)
        entry = (when + SETTLE_SECONDS, row, tuple(slots), util, memory)
        self._recent[uid] = entry
        heapq.heappush(self._settling, (entry[0], uid))
        self._add(entry, 1)

    def forget(self, uid: str) -> None:
        """Take back what `expect` added for a pod, if it has not been measured by now."""
        if entry := self._recent.pop(uid, None):
            self._add(entry, -1)

    def expire(self, now: float) -> list[int]:
        """Drop what is stale, or measured by now; returns the rows that changed."""
        changed = []
        while self._expiries and self._expiries[0][0] <= now:
            _, row = heapq.heappop(self._expiries)
            if row in self._fresh:
                was = self.util[:, row].tolist()
                self._show(row, now)
                if self.util[:, row].tolist() != was:
                    changed.append(row)
        while self._settling and self._settling[0][0] <= now:
            when, uid = heapq.heappop(self._settling)
            entry = self._recent.get(uid)
            if entry is not None and entry[0] == when:
                changed.append(entry[1])
                self.forget(uid)
        return changed

    def next_expiry(self) -> float | None:
        """Return when `expire` has something to do; None if never."""
        return min((heap[0][0] for heap in (self._settling, self._expiries) if heap), default=None)

    def stale(self, row: int) -> bool:
        """Return whether the row's agent has reported and is silent now."""
        return row in self._reported and row not in self._fresh

    def expected_util(self, rows: Rows) -> Column:
        """Return the percent of time that each GPU is busy, `UNKNOWN` where nothing is measured."""
        util = self.util[:, rows]
        total: Column = np.where(util < 0, UNKNOWN, util + self.unseen_util[:, rows])
        return total

    def expected_memory(self, rows: Rows) -> Column:
        """Return the MiB in use of each GPU, `UNKNOWN` where nothing is measured."""
        memory = self.memory[:, rows]
        total: Column = np.where(memory < 0, UNKNOWN, memory + self.unseen_memory[:, rows])
        return total

    def _add(self, entry: tuple[float, int, tuple[int, ...], float, float], sign: int) -> None:
        _, row, slots, util, memory = entry
        for slot in slots:
            self.unseen_util[slot, row] += sign * util
            self.unseen_memory[slot, row] += sign * memory

    def _show(self, row: int, now: float) -> bool:
        """Set the row's columns to what is fresh; returns whether anything is."""
        self.util[:, row] = self.memory[:, row] = UNKNOWN
        self._fresh.discard(row)
        gpus, loads = self._reported.get(row, ((), ()))
        if not loads:
            return False
        alive_until = self._renewed.get(self._lease_of[row], -LEASE_SECONDS) + LEASE_SECONDS
        slots = {gpu.uuid: slot for slot, gpu in enumerate(gpus)}
        until = 0.0
        for load in loads:
            fresh_until = max(alive_until, load.measured + HEARTBEAT_SECONDS)
            slot = slots.get(load.uuid)
            if slot is None or fresh_until <= now:
                continue
            self.util[slot, row] = load.util
            self.memory[slot, row] = load.memory_used_mib
            until = fresh_until if not until else min(until, fresh_until)
        if not until:
            return False
        self._fresh.add(row)
        heapq.heappush(self._expiries, (until, row))
        return True
