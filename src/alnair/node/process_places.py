"""Where the processes on GPUs are, and when they began: read once, and not every second.

A pidfd tells when a process has ended, so that its number is not taken for that of a later one. A
process that is moved to another control group is found there at the next reading of it.
"""

import os
import select
from typing import Final

import msgspec

from alnair.node.cgroups import Cgroup, Proc

#: Rounds after which a process is read again.
AGAIN: Final = 30


class _Known(msgspec.Struct):
    fd: int
    turn: int
    started: int
    place: Cgroup | None
    is_asked: bool = True


class ProcessPlaces:
    """Remembers processes that live; by one thread at a time.

    Args:
        proc: This machine's. Of another folder than `/proc`, nothing is remembered.
    """

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._known: dict[int, _Known] = {}
        self._poll = select.poll()
        self._count = 0

    def renew(self) -> None:
        """Begin a round: forget those that have ended, or that nobody asked for in the last one."""
        ended = {fd for fd, _ in self._poll.poll(0)} if self._known else set()
        for pid, one in list(self._known.items()):
            one.turn -= 1
            if one.fd in ended or one.turn <= 0 or not one.is_asked:
                self._forget(pid)
            one.is_asked = False

    def started(self, pid: int) -> int:
        """When a process started, in clock ticks since boot; 0 if it is gone."""
        known = self._look(pid)
        return self._proc.started(pid) if known is None else known.started

    def cgroup(self, pid: int) -> Cgroup | None:
        """Where a process is; None if it is gone."""
        known = self._look(pid)
        return self._proc.cgroup(pid) if known is None else known.place

    def close(self) -> None:
        """Forget all."""
        for pid in list(self._known):
            self._forget(pid)

    def _look(self, pid: int) -> _Known | None:
        known = self._known.get(pid)
        if known is None:
            fd = self._proc.watch(pid)
            if fd < 0:
                return None
            # Not all in the same round.
            self._count += 1
            turn = self._count % AGAIN + 1
            known = _Known(fd, turn, self._proc.started(pid), self._proc.cgroup(pid))
            self._known[pid] = known
            self._poll.register(fd, select.POLLIN)
        known.is_asked = True
        return known

    def _forget(self, pid: int) -> None:
        known = self._known.pop(pid)
        self._poll.unregister(known.fd)
        os.close(known.fd)
