"""How often the same thing is written of an object: at once, and then at most so often.

What changes faster than that is written once, as it is then. Without it, a job or a gang whose pods
come and go, and an object over which somebody else disagrees with us, cost as many writes as there
is news.
"""

import time
from collections.abc import Callable, Hashable
from typing import Final

import msgspec

#: Times that the wait doubles while the same is put right again and again, and seconds at most.
_DOUBLINGS: Final = 8
_MOST: Final = 60.0
#: Waits after which what is put right again is taken for news, and not for the same quarrel.
_FORGIVEN: Final = 4.0


class Paces(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds between two writes of a training job at least.

    Attributes:
        status_pace: Of a job's status, while only counts and words change.
        write_pace: Of its status otherwise, but for how it ended, and of one of its objects.
        group_pace: Of its PodGroup, each change of which has the scheduler look at the gang anew.
    """

    status_pace: float = 5.0
    write_pace: float = 1.0
    group_pace: float = 2.0


class Pace:
    """When each of many things was last written.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[Hashable, float] = {}
        #: How often each was written again as it was, as others change it again and again.
        self._repeats: dict[Hashable, int] = {}

    def wait(self, what: Hashable, every: float) -> float:
        """Return how many seconds to wait before the next write of a thing; 0 if it may be now."""
        last = self._last.get(what)
        if last is None:
            return 0.0
        return max(0.0, last + self._every(what, every) - self._clock())

    def note(self, what: Hashable, every: float, *, is_repeat: bool = False) -> None:
        """Note that a thing is written now.

        Args:
            what: The thing.
            every: Seconds between two writes.
            is_repeat: It is written as it was the last time, as somebody has changed it since.
        """
        now = self._clock()
        last = self._last.get(what)
        soon = last is not None and now - last < _FORGIVEN * self._every(what, every)
        self._repeats[what] = self._repeats.get(what, 0) + 1 if is_repeat and soon else 0
        self._last[what] = now

    def forget(self, what: Hashable) -> None:
        """Forget a thing that is gone."""
        self._last.pop(what, None)
        self._repeats.pop(what, None)

    def _every(self, what: Hashable, every: float) -> float:
        doubled: float = every * 2 ** min(self._repeats.get(what, 0), _DOUBLINGS)
        return max(every, min(doubled, _MOST))
