"""What will happen, in the order of time; of the same time, in the order in which it was noted."""

import heapq

import msgspec

from alnair.sim.jobs import Job, NodeEvent
from alnair.sim.task_progress import Task


class Arrives(msgspec.Struct, frozen=True):
    """A job is submitted."""

    job: Job


class Ends(msgspec.Struct, frozen=True):
    """The work of a task is done, unless its speed changes before."""

    task: Task
    version: int


class Gone(msgspec.Struct, frozen=True):
    """An evicted pod has ended at last."""

    uid: str


class Reports(msgspec.Struct, frozen=True):
    """The agent of a node reports what its GPUs do."""

    node: str


SimulationEvent = Arrives | Ends | Gone | Reports | NodeEvent


class EventQueue:
    """Happenings by time, seconds since the epoch."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, SimulationEvent]] = []
        self._number = 0

    def note(self, when: float, what: SimulationEvent) -> None:
        """Note that something will happen."""
        heapq.heappush(self._heap, (when, self._number, what))
        self._number += 1

    def next(self) -> float | None:
        """Return when the next happening is, None if there is none."""
        while self._heap:
            when, _, what = self._heap[0]
            if isinstance(what, Ends) and what.version != what.task.version:
                heapq.heappop(self._heap)
                continue
            return when
        return None

    def take(self, now: float) -> list[SimulationEvent]:
        """Take out what happens up to now."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            found.append(heapq.heappop(self._heap)[2])
        return found
