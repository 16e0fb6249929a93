"""What an interrupt does to a command that runs long: the first ends it in good order."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)


def until_interrupted(seconds: float | None) -> Callable[[], Awaitable[None]]:
    """Return what ends at an interrupt, or after these seconds; call it in the event loop."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _NUMBERS:
        loop.add_signal_handler(number, asked.set)

    async def stop() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asked.wait()

    return stop


@contextlib.contextmanager
def setting(stop: asyncio.Event) -> Iterator[None]:
    """Have the first interrupt set an event of the running loop; the second ends all at once."""
    loop = asyncio.get_running_loop()

    def restore() -> None:
        for number in _NUMBERS:
            loop.remove_signal_handler(number)

    def interrupted() -> None:
        stop.set()
        restore()

    for number in _NUMBERS:
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        restore()


@contextlib.contextmanager
def counted() -> Iterator[Callable[[], bool]]:
    """Tell whether an interrupt came, without an event loop; the second ends all at once."""
    came: list[int] = []
    before = [signal.getsignal(number) for number in _NUMBERS]

    def restore() -> None:
        for number, handler in zip(_NUMBERS, before, strict=True):
            signal.signal(number, handler)

    def interrupted(number: int, _frame: object) -> None:
        came.append(number)
        restore()

    for number in _NUMBERS:
        signal.signal(number, interrupted)
    try:
        yield lambda: bool(came)
    finally:
        restore()
