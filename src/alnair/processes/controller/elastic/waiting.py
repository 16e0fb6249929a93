"""Why training jobs that wait find no room, for their status."""

from collections.abc import Iterable
from typing import Final

from alnair.model.workload import Pod
from alnair.processes.controller.elastic.children import JobKey
from alnair.scheduler.advice.why_no_room import NoRoom, why_no_room
from alnair.scheduler.engine.view import View

#: Seconds after which it is asked again why a job waits, and of how many at once: each is a try.
_AGAIN: Final = 60.0
_AT_ONCE: Final = 16


class WaitingJobs:
    """Remembers what was found; words that change with every pod are not written each time."""

    def __init__(self) -> None:
        self._why: dict[JobKey, NoRoom] = {}
        self._asked: dict[JobKey, float] = {}

    def why(self, key: JobKey) -> NoRoom:
        """Return why a job waits, as far as that was asked."""
        return self._why.get(key, NoRoom())

    def ask(
        self, view: View, waiting: Iterable[tuple[JobKey, Pod, int]], now: float
    ) -> list[JobKey]:
        """Find out why jobs wait; returns those of which it is news.

        Args:
            view: Of the engine, as a plan has just seen it.
            waiting: All that wait: each with a worker's pod, and how many it needs at least.
            now: Seconds since the epoch.
        """
        present = {key: (pod, least) for key, pod, least in waiting}
        for key in [key for key in self._asked if key not in present]:
            del self._asked[key]
            self._why.pop(key, None)
        due = [key for key in present if now >= self._asked.get(key, 0.0) + _AGAIN]
        news = []
        for key in due[:_AT_ONCE]:
            self._asked[key] = now
            found = why_no_room(view, *present[key], now)
            if found != self.why(key):
                self._why[key] = found
                news.append(key)
        return news
