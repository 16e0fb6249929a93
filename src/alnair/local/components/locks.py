"""Locks between processes: the kernel frees them when their holder ends, however it ends."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

_POLL_SECONDS = 0.1


class _Lock:
    """A lock file, which may be removed by its holder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self, *, wait: bool) -> bool:
        """Takes the lock; False when somebody else holds it and nobody wants to wait."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if self._is(descriptor):
                    self._descriptor, descriptor = descriptor, -1
                    return True
            except BlockingIOError:
                return False
            finally:
                if descriptor >= 0:
                    os.close(descriptor)

    def release(self) -> None:
        """Lets the next one have it."""
        os.close(self._descriptor)

    def _is(self, descriptor: int) -> bool:
        """Whether the file held is the one that others open; its last holder may remove it."""
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds a lock alone.

    Args:
        path: The lock file; it is made, and left when it is done.
        waiting: Called once when somebody else holds it.
    """
    lock = _Lock(path)
    if not lock.take(wait=False):
        waiting()
        lock.take(wait=True)
    try:
        yield
    finally:
        lock.release()


@contextlib.asynccontextmanager
async def exclusive_async(path: Path, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """The same, without keeping the event loop (and with it, an interrupt) waiting."""
    lock = _Lock(path)
    told = False
    while not lock.take(wait=False):
        if not told:
            waiting()
            told = True
        await asyncio.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()
