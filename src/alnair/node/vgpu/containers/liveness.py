"""Which processes of a container live, and which slots belong to processes that do not.

A slot names a pid of the container's own namespace, and a tenant may write any. So a slot counts as
alive only if a process of the container's control group calls itself so (NSpid) and started when
the slot says. From then on a pidfd watches it: the kernel tells at once when it ends.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.cgroups import Proc
from alnair.node.vgpu.containers.journal import ControlGroup
from alnair.node.vgpu.pages.counters import CountersFile, Slot

#: A look at a container's processes is followed by so many times its duration without one: who has
#: thousands of them, and writes slots that name nobody, gets a twentieth of a processor for it.
_REST: Final = 20


class Owner(msgspec.Struct, frozen=True):
    """Whose a slot is, as the slot says."""

    index: int
    owner: int
    started: int


class ProcessWatch:
    """The processes of one container.

    Args:
        proc: This machine's.
        counters: The container's.
        on_end: Called when a process of the container has ended that had a slot.

    Attributes:
        ended: Host pid → monotonic seconds at which it ended, of those that had a slot lately.
        freed: Slots of the dead that were freed so far.
        known_at: Monotonic seconds of the last look that told whose each slot is, or that it is of
            nobody who lives.
    """

    def __init__(self, proc: Proc, counters: CountersFile, on_end: Callable[[], None]) -> None:
        self._proc = proc
        self._counters = counters
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._watched: dict[Owner, tuple[int, int]] = {}
        self._dead: set[Owner] = set()
        self._doubted: set[Owner] = set()
        self.ended: dict[int, float] = {}
        self.freed = 0
        self.known_at = float("-inf")
        self._rests_until = 0.0
        #: Of the control group; "": its hierarchy is not mounted here.
        self._folder: tuple[ControlGroup, str] | None = None
        self._own_time = _time_namespace("self")

    def close(self) -> None:
        """Watch nobody any more."""
        for owner in tuple(self._watched):
            self._unwatch(owner)

    @property
    def pids(self) -> dict[int, int]:
        """The host pids of processes with slots → index of the slot."""
        return {pid: owner.index for owner, (pid, _) in self._watched.items()}

    def look(self, slots: Sequence[Slot], group: ControlGroup | None) -> bool:
        """Join the slots with the processes; free those of the dead.

        Returns:
            Whether the container's control group is still there; True while it is not known.

        Args:
            slots: As they are now, or were before.
            group: The container's.
        """
        named = {Owner(s.index, s.owner, s.started) for s in slots if s.owner}
        unheld = {owner for owner, (_, fd) in self._watched.items() if fd < 0}
        for gone in (self._watched.keys() - named) | unheld:
            self._unwatch(gone)
        self._dead &= named
        if group is None:
            self.known_at = self._loop.time()  # nobody of it has registered
            return True
        if unknown := named - self._watched.keys() - self._dead:
            self._find(unknown, group)
        if not unknown - self._watched.keys() - self._dead:
            self.known_at = self._loop.time()
        self.sweep()
        if self._folder is None or self._folder[0] is not group:
            self._folder = group, str(self._proc.mounts.folder(group.path, group.controller) or "")
        return os.path.isdir(self._folder[1])  # noqa: PTH112 (on a warm path)

    def _find(self, unknown: set[Owner], group: ControlGroup) -> None:
        """Watch those of these owners that live; the others are dead."""
        began = self._loop.time()
        if began < self._rests_until:
            return
        # Read after the slots: whose slot was read and who lives is among these.
        found = self._proc.processes(group.path, group.controller)
        alive: dict[int, list[int]] = {}
        for pid in found.pids if found is not None else ():
            if own := self._proc.ns_pid(pid):
                alive.setdefault(own, []).append(pid)
        doubted: set[Owner] = set()
        for owner in unknown:
            called_so = alive.get(owner.owner, [])
            its = next((pid for pid in called_so if self._is(pid, owner)), None)
            if its is not None and self._watch(owner, its):
                continue
            if called_so and owner not in self._doubted:
                # It may have claimed the slot a moment ago, and not said yet when it started.
                doubted.add(owner)
            elif found is None or found.is_complete:
                # Of a container with too many processes nobody can be said to be missing.
                self._dead.add(owner)
        self._doubted = doubted
        now = self._loop.time()
        self._rests_until = now + _REST * (now - began)

    def sweep(self) -> None:
        """Free the slots of the dead, unless a process of the container does so right now."""
        if self._dead:
            dead = [(each.index, each.owner, each.started) for each in self._dead]
            self.freed += self._counters.free(dead)
            now = self._loop.time()
            self.ended = {pid: end for pid, end in self.ended.items() if now - end < 10}

    def _is(self, pid: int, owner: Owner) -> bool:
        """Tell whether a process with the slot's pid is also as old as the slot says."""
        if not owner.started or self._proc.started(pid) == owner.started:
            return True
        # In a time namespace of its own a process reads another start.
        return _time_namespace(str(pid)) != self._own_time

    def _watch(self, owner: Owner, pid: int) -> bool:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        except OSError:
            fd = -1  # no descriptors left: every look judges it anew
        self._watched[owner] = (pid, fd)
        if fd >= 0:
            self._loop.add_reader(fd, self._end, owner)
        return True

    def _unwatch(self, owner: Owner) -> int:
        pid, fd = self._watched.pop(owner)
        if fd >= 0:
            self._loop.remove_reader(fd)
            os.close(fd)
        return pid

    def _end(self, owner: Owner) -> None:
        self.ended[self._unwatch(owner)] = self._loop.time()
        self._dead.add(owner)
        self.sweep()
        self._on_end()


def _time_namespace(pid: str) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/time").readlink())
    except OSError:
        return ""
