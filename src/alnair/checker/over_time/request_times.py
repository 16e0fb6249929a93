"""How long requests took lately: the scheduler's may have taken as long as the watcher's own.

A scheduler cannot take back a Binding that it has sent. While the API server or its store is held
up, another scheduler's binding can be seen after ours was sent and before ours is written.
"""

from collections import deque
from typing import Final

#: Requests that ended at most so long (seconds) before a moment tell of that moment.
_LATELY: Final = 0.5
#: Requests are remembered for so long (seconds); a watch that broke off brings news that late.
_REMEMBERED: Final = 60.0


class RequestTimes:
    """When the watcher sent requests, one after the other, and when they were answered.

    All times are in seconds, monotonic.
    """

    def __init__(self) -> None:
        self._under_way: float | None = None
        self._done: deque[tuple[float, float]] = deque()

    def sent(self, now: float) -> None:
        """Note that a request is sent."""
        self._under_way = now

    def answered(self, now: float) -> None:
        """Note that it was answered, or failed."""
        if self._under_way is not None:
            self._done.append((self._under_way, now))
            self._under_way = None
        while self._done and self._done[0][1] < now - _REMEMBERED:
            self._done.popleft()

    def longest(self, earliest: float, now: float) -> float:
        """Return how long a request may have taken that was carried out in this time (seconds).

        Args:
            earliest: When the time begins.
            now: When it ends.
        """
        took = [end - begin for begin, end in self._done if end >= earliest - _LATELY]
        if self._under_way is not None:
            took.append(now - self._under_way)
        return max(took, default=0.0)
