"""The vGPU server: all containers of the node, the journal, and the ticks that keep them true."""

import asyncio
import contextlib
import logging
import resource
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Self

from alnair.node.cgroups import Cgroup, Proc
from alnair.node.vgpu.compute_shares import TICK_NS, Compute
from alnair.node.vgpu.containers.container import Status, VgpuContainer
from alnair.node.vgpu.containers.container_slices import ContainerSlices, problem
from alnair.node.vgpu.containers.journal import Entry, Journal, JournalError
from alnair.node.vgpu.folder_lock import FolderLock
from alnair.node.vgpu.memory_loans import MemoryLoans
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.counters import TURNS
from alnair.node.vgpu.pages.limits_page import refuse

#: Seconds between looks at which processes live; a pidfd tells of those that are known at once.
LOOK: Final = 0.5
#: Seconds that such a look may take before others have their turn.
AT_A_TIME: Final = 0.002
#: Seconds after which a container whose control group is gone is removed.
LINGER: Final = 10.0
#: Seconds between looks at whether a damaged container can be served again.
REPAIR: Final = 10.0

_log = logging.getLogger(__name__)


class VgpuServer:
    """Serves the containers of a node. Use as an async context manager.

    Args:
        folder: Its own, on a tmpfs: the journal and a folder per container.
        proc: This machine's.
        lock: On the folder, held already and by the caller; None: it takes and releases it.

    Attributes:
        containers: By name.
        compute: The rates.
        loans: Of memory.
        ticks: Ticks so far, and the seconds that they took together.
        damaged: Why the folder of a container cannot be used, by its name: such a container is
            refused, and the others are served.
    """

    def __init__(
        self, folder: Path, proc: Proc | None = None, lock: FolderLock | None = None
    ) -> None:
        self.folder = folder
        self.proc = proc or Proc()
        self.containers: dict[str, VgpuContainer] = {}
        self.compute = Compute()
        self.loans = MemoryLoans(self.containers)
        self.ticks = (0, 0.0)
        self.damaged: dict[str, str] = {}
        self._unserved: dict[str, Entry] = {}
        self._repair_at = 0.0
        self._contexts: tuple[Mapping[str, int], int] | None = None
        self._journal = Journal(folder)
        self._tasks: list[asyncio.Task[None]] = []
        #: What this object releases.
        self._lock = FolderLock(folder) if lock is None else None
        #: What went wrong and was logged: it may go wrong again twenty times a second.
        self._logged: set[str] = set()

    async def __aenter__(self) -> Self:
        """Take over what a server before this one left.

        Raises:
            OSError: The folder cannot be used, or another server uses it.
            JournalError: The journal cannot be used.
        """
        if self._lock is not None and not self._lock.take():
            raise OSError(self._lock.in_use)
        try:
            entries = self._journal.load()
            _raise_descriptors()
            for entry in entries:
                self._take_over(entry)
        except (OSError, JournalError):
            await self.__aexit__()
            raise
        self._sweep()
        self._save()
        self._tasks = [
            asyncio.create_task(self._every(self._tick)),
            asyncio.create_task(self._every(self._look)),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for container in self.containers.values():
            container.close()
        self.containers.clear()
        if self._lock is not None:
            self._lock.release()

    def prepare(self, assignment: ContainerSlices) -> str:
        """Make a container's folder, or change what it holds; before its first process runs.

        If a container of this name runs, its limits are changed. If it ran, it begins anew.

        Returns:
            Why not, or "" if it is done.

        Raises:
            OSError: The folder or the journal cannot be written.
        """
        if said := problem(assignment):
            return said
        if taken := self._taken(assignment):
            return taken
        before = self.containers.get(assignment.name)
        if assignment.name in self._unserved:
            self._give_up(assignment.name)  # it begins anew
        if before is not None:
            uuids = [
                [share.uuid for share in one.shares] for one in (assignment, before.assignment)
            ]
            is_fresh = before.group is None and before.assignment.who == assignment.who
            if self._runs(before) or (is_fresh and uuids[0] == uuids[1]):
                return self.change(assignment)
            before.close()
            self._forget(assignment.name)
            # Its processes are gone: what their slots held is nobody's.
            (before.folder / "counters").unlink(missing_ok=True)
        self._open(Entry(assignment, before.counters.generation + 1 if before is not None else 0))
        self._save()
        return ""

    def _taken(self, wanted: ContainerSlices) -> str:
        if wanted.who.pod and not (wanted.who.container or wanted.who.cgroup):
            return ""  # the containers of a pod: the socket tells which
        for name, other in self.containers.items():
            if name != wanted.name and other.assignment.who == wanted.who:
                return f"container {name} is told by the same: remove it first"
        return ""

    def _runs(self, container: VgpuContainer) -> bool:
        group = container.group
        if group is None:
            return False
        found = self.proc.processes(group.path, group.controller)
        return found is not None and bool(found.pids)

    def change(self, assignment: ContainerSlices) -> str:
        """Change the limits of a container at once; it need not stop.

        Returns:
            Why not, or "" if it is done.

        Raises:
            OSError: The journal cannot be written.
        """
        if said := problem(assignment):
            return said
        container = self.containers.get(assignment.name)
        if container is None:
            return missing(assignment.name)
        old = [share.uuid for share in container.assignment.shares]
        if [share.uuid for share in assignment.shares] != old:
            return f"the GPUs of a container cannot be changed while it runs: it has {old}"
        if assignment.who != container.assignment.who:
            return "what tells a container's processes cannot be changed: remove and add it"
        container.change(assignment)
        self._save()
        return ""

    def remove(self, name: str) -> str:
        """Take a container's slices back; processes of it that run are refused what is new.

        Returns:
            Why not, or "" if it is done.

        Raises:
            OSError: The journal cannot be written.
        """
        if name in self._unserved:
            self._give_up(name)
            return ""
        container = self.containers.get(name)
        if container is None:
            return missing(name)
        del self.containers[name]
        try:
            # The journal first: a folder without an entry is swept away at the next start.
            self._save()
        except OSError:
            self.containers[name] = container
            raise
        self._forget(name)
        container.delete()
        return ""

    def is_refused(self, place: Cgroup) -> bool:
        """Tell whether a process in this place is of a container whose folder is damaged."""
        return any(entry.assignment.who.is_met_by(place) for entry in self._unserved.values())

    def learn(self, contexts: Mapping[str, int], otherwise: int = 0) -> None:
        """Take in what a context costs, for the containers that are not assigned a figure.

        Args:
            contexts: Bytes by a GPU's UUID.
            otherwise: Bytes on all other GPUs; 0 leaves it to the library's default.
        """
        self._contexts = dict(contexts), otherwise
        for container in self.containers.values():
            self._guarded(container, container.learn)

    def _context_bytes(self, uuid: str) -> int | None:
        if self._contexts is None:
            return None
        known, otherwise = self._contexts
        return known.get(uuid, otherwise)

    def status(self) -> list[Status]:
        """All containers by name, as they are now."""
        for container in self.containers.values():
            # Who came or ended since the last look is told as well.
            self._guarded(container, partial(container.look, asyncio.get_running_loop().time()))
        return [_status(container) for _, container in sorted(self.containers.items())]

    def _open(self, entry: Entry) -> None:
        name = entry.assignment.name
        folder = self.folder / "containers" / name
        self.containers[name] = VgpuContainer(
            folder, entry, self.proc, self._try_to_save, self._context_bytes
        )

    def _take_over(self, entry: Entry) -> None:
        """Open a container that was there before; one that is damaged must not keep out others."""
        name = entry.assignment.name
        try:
            self._open(entry)
        except Exception as error:  # noqa: BLE001 (logged)
            if self.damaged.get(name) != str(error):
                _log.exception("container %s cannot be served and is refused", name)
            self.damaged[name] = str(error)
            self._unserved[name] = entry
            refuse(self.folder / "containers" / name, f"the folder of this container: {error}")
        else:
            if self.damaged.pop(name, None) is not None:
                _log.info("container %s is served again", name)
            self._unserved.pop(name, None)

    def _give_up(self, name: str) -> None:
        """Forget a damaged container, and remove its folder."""
        entry, folder = self._unserved.pop(name), self.folder / "containers" / name
        try:
            self._save()
        except OSError:
            self._unserved[name] = entry
            raise
        del self.damaged[name]
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            folder.unlink(missing_ok=True)

    def _forget(self, name: str) -> None:
        self.containers.pop(name, None)
        self.compute.forget(name)
        self.loans.forget(name)

    def _try_to_save(self) -> None:
        try:
            self._save()
        except OSError as error:
            # After a restart the container registers once more; nothing else is lost.
            _log.error("the journal cannot be written: %s", error)

    def _save(self) -> None:
        entries = {name: c.entry for name, c in self.containers.items()} | self._unserved
        self._journal.save(tuple(entry for _, entry in sorted(entries.items())))

    def _sweep(self) -> None:
        """Remove folders that no entry of the journal names: a server died between the two."""
        with contextlib.suppress(FileNotFoundError):
            for folder in (self.folder / "containers").iterdir():
                if folder.name not in self.containers and folder.name not in self._unserved:
                    shutil.rmtree(folder, ignore_errors=True)

    async def _every(self, work: Callable[[], Awaitable[float]]) -> None:
        """Work again and again, after as many seconds as it says."""
        loop = asyncio.get_running_loop()
        following, seconds = loop.time(), LOOK
        while True:
            try:
                seconds = await work()
            except Exception as error:  # noqa: BLE001 (logged)
                # The next one may be well; without ticks the containers would lose their rates.
                self._log_once("a tick failed", error)
            # A tick that came late is not made up for.
            following = max(following + seconds, loop.time())
            await asyncio.sleep(following - loop.time())

    async def _tick(self) -> float:
        begun, now_ns = time.perf_counter(), time.monotonic_ns()
        turn = self.ticks[0] % TURNS
        for container in self.containers.values():
            if not container.counters.is_due(turn):
                continue  # most containers, most of the time
            try:
                container.read(turn)
            except Exception as error:  # noqa: BLE001 (logged)
                self._note(container, error)
        self.compute.tick(self.containers.values(), now_ns)
        self.loans.tick()
        count, seconds = self.ticks
        # Where all sleep, there is nothing to be done until the next round.
        sleep = not self.compute.busy and all(
            one.counters.step == TURNS for one in self.containers.values()
        )
        turns = TURNS - turn if sleep else 1
        self.ticks = count + turns, seconds + time.perf_counter() - begun
        return turns * TICK_NS / 1e9

    async def _look(self) -> float:
        loop = asyncio.get_running_loop()
        began = now = loop.time()
        if self._unserved and now >= self._repair_at:
            self._repair_at = now + REPAIR
            for entry in tuple(self._unserved.values()):
                self._take_over(entry)
        for name, container in tuple(self.containers.items()):
            self._guarded(container, partial(container.look, now))
            gone = container.gone_since
            if gone is not None and now - gone > LINGER and not container.assignment.keep:
                _log.info("container %s is gone", name)
                self._guarded(container, partial(self.remove, name))
            if loop.time() - began > AT_A_TIME:
                await asyncio.sleep(0)  # registrations come in between
                began = loop.time()
        return LOOK

    def _guarded(self, container: VgpuContainer, work: Callable[[], object]) -> None:
        """Do something with one container; what goes wrong there does not concern the others."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 (logged)
            self._note(container, error)

    def _note(self, container: VgpuContainer, error: Exception) -> None:
        self._log_once(f"container {container.assignment.name}", error)

    def _log_once(self, what: str, error: Exception) -> None:
        line = f"{what}: {error!r}"
        if line not in self._logged:
            self._logged = {*list(self._logged)[-99:], line}
            _log.error(what, exc_info=error)


def missing(name: str) -> str:
    """Say that there is no container of this name."""
    return f"there is no container {name}: see 'alnair agent container list'"


def _status(container: VgpuContainer) -> Status:
    shares = range(len(container.assignment.shares))
    return Status(
        assignment=container.assignment,
        folder=str(container.folder),
        state="suspended" if container.suspended else _state(container),
        group=container.group,
        processes=len(container.census.pids),
        held_bytes=tuple(container.held(row) for row in shares),
        swapped_bytes=tuple(container.swapped(row) for row in shares),
        lent_bytes=tuple(container.loan(row) for row in shares),
        overhead_bytes=tuple(container.limits.page.device[row].memory_overhead for row in shares),
    )


def _raise_descriptors() -> None:
    """Allow as many open files as one may: a pidfd is kept per process that uses CUDA."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _state(container: VgpuContainer) -> str:
    return abi.State(container.limits.page.state).name.lower()
