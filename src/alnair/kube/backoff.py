"""How long to wait before trying again what failed by no fault of the request."""

import random
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Timers(Protocol):
    """A clock that wakes, as an event loop is one; tests have their own."""

    def time(self) -> float:
        """Return monotonic seconds."""
        ...

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> object:
        """Call something after so many seconds."""
        ...


class Backoff:
    """Growing waits with jitter; pure but for the injected source of randomness.

    Args:
        first: Seconds of the first wait.
        most: Seconds that no wait exceeds before jitter.
        jitter: Numbers in [0, 1). Each wait is drawn from [0.5, 1.5) of its nominal length, so
            that a thousand clients of a restarted server do not come back at one moment.
    """

    def __init__(
        self,
        first: float = 0.25,
        most: float = 8.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._first = first
        self._most = most
        self._jitter = jitter
        self._failures = 0

    def reset(self) -> None:
        """Note a success: the next wait is the first again."""
        self._failures = 0

    def next(self, at_least: float | None = None) -> float:
        """Return how many seconds to wait now, never less than the server asked for."""
        # The exponent is bounded because 2.0 ** 1100 overflows after a night of failures.
        nominal = min(self._most, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        wait = nominal * (0.5 + self._jitter())
        return max(wait, at_least) if at_least is not None else wait


class Backoffs(Generic[Key]):
    """A backoff for each of many things that are tried again, each on its own.

    Args:
        fresh: Makes one for a thing that has failed for the first time.
    """

    def __init__(self, fresh: Callable[[], Backoff]) -> None:
        self._fresh = fresh
        self._failing: dict[Key, Backoff] = {}

    def next(self, key: Key) -> float:
        """Return how many seconds to wait after one more failure."""
        return self._failing.setdefault(key, self._fresh()).next()

    def reset(self, key: Key) -> None:
        """Note a success, or that it need not be tried any more."""
        self._failing.pop(key, None)

    def __len__(self) -> int:
        return len(self._failing)
