"""An event loop, and the clocks of Python, in the fake GPU's time.

What runs in it is the program as shipped: it sleeps, it asks for the time, and while nobody has
anything to do, the fake's clock goes on to the next timer.
"""

import asyncio
import math
import selectors
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from native.fake import Fake

#: Before anybody puts another in its place.
_clock_gettime_ns = time.clock_gettime_ns


class _Selector(selectors.DefaultSelector):
    """Waits by the fake's clock; what comes through descriptors is looked at in between."""

    def __init__(self, fake: Fake) -> None:
        super().__init__()
        self._fake = fake
        #: Only a wait takes time here: to ask the fake again would cost time, and a turn.
        self.now_ns = fake.now_ns()
        #: Until the calling thread has joined the clock, time stands still.
        self.joined = False

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found and self.joined and timeout is not None and timeout > 0:
            self.now_ns += math.ceil(timeout * 1e9)
            self._fake.sleep_until_ns(self.now_ns)
            found = super().select(0)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is the fake's."""

    def __init__(self, fake: Fake) -> None:
        self._clock, self._fake = _Selector(fake), fake
        #: The kernel's time since boot, and the fake's, at which this thread joined; nanoseconds.
        self._joined: tuple[int, int] | None = None
        super().__init__(self._clock)

    @property
    def now_ns(self) -> int:
        """The time, nanoseconds."""
        return self._clock.now_ns

    @property
    def boot_ns(self) -> int:
        """Time since boot, nanoseconds: the kernel's until this thread joins, then by the fake's.

        By it the age of a process is told, whose samples are in the fake's time: by the kernel's
        they would be of before its birth, or not, as fast as this machine is just now.
        """
        if self._joined is None:
            return _clock_gettime_ns(time.CLOCK_BOOTTIME)
        boot, joined = self._joined
        return boot + self.now_ns - joined

    def time(self) -> float:
        return self._clock.now_ns / 1e9

    def join(self) -> None:
        """From now on the clock waits for this thread."""
        self._fake.join()
        self._joined = self.boot_ns, self.now_ns
        self._clock.joined = True

    def leave(self) -> None:
        """The clock does not wait for it any more."""
        self._clock.joined = False
        self._fake.leave()


@contextmanager
def virtual_time(loop: VirtualLoop) -> Iterator[None]:
    """Python's clocks say the fake's time, as NVML does in what it tells of samples."""
    with ExitStack() as stack:
        for name in ("monotonic_ns", "time_ns"):
            stack.enter_context(patch.object(time, name, lambda: loop.now_ns))

        def clock_gettime_ns(clock: int) -> int:
            return loop.boot_ns if clock == time.CLOCK_BOOTTIME else _clock_gettime_ns(clock)

        stack.enter_context(patch.object(time, "clock_gettime_ns", clock_gettime_ns))
        seconds = lambda clock: clock_gettime_ns(clock) / 1e9  # noqa: E731
        stack.enter_context(patch.object(time, "clock_gettime", seconds))
        stack.enter_context(patch.object(time, "monotonic", lambda: loop.now_ns / 1e9))
        yield
