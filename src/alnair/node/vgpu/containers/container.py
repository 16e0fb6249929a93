"""One container as the server keeps it: its folder, its pages, its socket, its processes."""

import asyncio
import contextlib
import shutil
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.cgroups import Cgroup, Proc
from alnair.node.vgpu.containers import peer_credentials
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices
from alnair.node.vgpu.containers.journal import ControlGroup, Entry
from alnair.node.vgpu.containers.liveness import ProcessWatch
from alnair.node.vgpu.containers.registration import RegistrationSocket
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.counters import CountersFile, Slot
from alnair.node.vgpu.pages.limits_page import Contexts, LimitsPage
from alnair.node.vgpu.pages.totals import Totals

#: What a process reads that starts in a container that is suspended.
_SUSPENDED: Final = "this container is suspended: resume it first"


class VgpuContainer:
    """A container that was prepared, in the running event loop.

    Args:
        folder: Its own; made if it is not there.
        entry: What is assigned to it and known of it.
        proc: This machine's.
        on_news: Called when there is something that the journal must hold.
        contexts: Tells what a context costs on a GPU.

    Attributes:
        assignment: What it may use now.
        group: Its control group, once a process has registered.
        since: Monotonic seconds at which it was prepared or first registered.
        totals: What it used since this server started.
        slots: Its processes, as of the last look.
        suspended: Its processes are to rest, and no new one gets CUDA.
        released: They do, and hold nothing of a GPU; what their slots say is in the host's memory.
        gone_since: Monotonic seconds since when its control group is gone; None while it is not.
    """

    def __init__(
        self,
        folder: Path,
        entry: Entry,
        proc: Proc,
        on_news: Callable[[], None],
        contexts: Contexts = lambda _: None,
    ) -> None:
        self.folder = folder
        self.assignment = entry.assignment
        self.group = entry.group
        self.suspended = entry.suspended
        self.released = False
        self._proc = proc
        self._on_news = on_news
        self._contexts = contexts
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.chmod(0o755)
        # What is open is closed again if the rest cannot be made: nobody would know of it.
        with contextlib.ExitStack() as made:
            self._open(entry, made)
            self._opened = made.pop_all()

    def _open(self, entry: Entry, made: contextlib.ExitStack) -> None:
        self.limits = LimitsPage(self.folder / "limits")
        made.callback(self.limits.close)
        self.counters = CountersFile(self.folder / "counters", len(self.assignment.shares))
        made.callback(self.counters.close)
        if not self.counters.was_valid or self.counters.generation != entry.generation:
            self.counters.rebuild(entry.generation + 1)
        # A living container finds its page as it left it; a torn or lost page is written anew.
        state = abi.State.REGISTERED if self.group is not None else abi.State.WAITING
        message = _SUSPENDED if entry.suspended else entry.message
        if message:
            state = abi.State.REFUSED
        self.limits.assign(self.assignment, state, self.counters.generation, self._contexts)
        if message:
            self.limits.say(state, message)
        self.limits.beat(time.monotonic_ns())
        self.since = asyncio.get_running_loop().time()
        self.gone_since: float | None = None
        self.totals = Totals(len(self.assignment.shares))
        self.slots: tuple[Slot, ...] = ()
        self.census = ProcessWatch(self._proc, self.counters, self.read)
        made.callback(self.census.close)
        self.registration = RegistrationSocket(self.folder, self._answer)
        made.callback(self.registration.close)

    def close(self) -> None:
        """Let go of it; the container goes on by its pages."""
        self._opened.close()

    def delete(self) -> None:
        """Close it, and remove its folder."""
        self.limits.say(abi.State.REFUSED, "the slices of this container were taken back")
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def entry(self) -> Entry:
        """What the journal must hold of it."""
        is_refused = self.is_refused and not self.suspended
        message = self.limits.page.message.decode() if is_refused else ""
        generation = self.counters.generation
        return Entry(self.assignment, generation, self.group, message, self.suspended)

    @property
    def is_refused(self) -> bool:
        """Whether it may not use CUDA at all."""
        return bool(self.limits.page.state == abi.State.REFUSED)

    def change(self, assignment: ContainerSlices) -> None:
        """Put other limits in force, at once; the GPUs must be the same, in the same order."""
        self.assignment = assignment
        state = abi.State(self.limits.page.state)
        self.limits.assign(assignment, state, self.counters.generation, self._contexts)

    def learn(self) -> None:
        """Take in what contexts cost, for those that are made from now on."""
        for row, share in enumerate(self.assignment.shares):
            cost = self._contexts(share.uuid)
            if not share.context_mib and cost is not None:
                self.limits.update(row, context_bytes=cost)

    def refuse(self, message: str) -> None:
        """Let no process of it use CUDA from now on; those that run are not touched."""
        self.limits.say(abi.State.REFUSED, message)
        self._on_news()

    def suspend(self) -> None:
        """Let no further process of it use CUDA until it is resumed."""
        if not self.suspended:
            self.suspended = True
            self.limits.say(abi.State.REFUSED, _SUSPENDED)
            self._on_news()

    def resume(self) -> None:
        """Let its processes use CUDA again."""
        self.suspended = self.released = False
        registered = self.group is not None
        self.limits.say(abi.State.REGISTERED if registered else abi.State.WAITING)
        self._on_news()

    def read(self, turn: int = 0) -> None:
        """Take in what its processes counted; in some turns what is likely to have changed."""
        slots = self.counters.read(turn)
        if slots is not self.slots:
            self.totals.add(slots)
            self.slots = slots

    def look(self, now: float) -> None:
        """Find out which of its processes live, and tell them that the server does."""
        self.limits.beat(time.monotonic_ns())
        self.read()  # where a tenant damaged the file, this sets it right
        freed = self.census.freed
        is_there = self.census.look(self.slots, self.group)
        if self.census.freed != freed:
            self.read()
        if is_there:
            self.gone_since = None
        elif self.gone_since is None:
            self.gone_since = now

    def held(self, row: int) -> int:
        """Bytes that its living processes hold on a GPU, by its own word."""
        return sum(slot.devices[row].held for slot in self.slots if slot.owner)

    def loaded(self, row: int, pids: Iterable[int]) -> int:
        """Bytes that their modules are charged with, if the driver lists all who hold something.

        Of a process that it does not list it charges nothing: that is no sign of lazy loading.

        Args:
            row: Of the GPU.
            pids: Its processes that the driver lists there.
        """
        listed = {self.census.pids[pid] for pid in pids if pid in self.census.pids}
        holding = [s for s in self.slots if s.owner and s.devices[row].held]
        if not all(slot.index in listed for slot in holding):
            return 0
        return sum(slot.loaded[row] for slot in holding if slot.loaded)

    def swapped(self, row: int) -> int:
        """Bytes that they hold in the host's memory beyond their slice of a GPU."""
        return sum(slot.swapped[row] for slot in self.slots if slot.owner and slot.swapped)

    def loan(self, row: int) -> int:
        """Bytes of a GPU that it may hold beyond its slice."""
        return int(self.limits.page.loan[row].bytes)

    def _answer(self, connection: socket.socket) -> tuple[abi.Reply, str]:
        try:
            pid, place = peer_credentials.identify(connection, self._proc)
        except peer_credentials.UnknownPeerError as error:
            return abi.Reply.REFUSED, str(error)
        if not self.has(place):
            name = self.assignment.name
            text = f"process {pid} is not of container {name}: its cgroup is {place.path}"
            return abi.Reply.REFUSED, text
        if self.is_refused:
            return abi.Reply.REFUSED, self.limits.page.message.decode()
        if self.group is None:
            self.group = learned(self.assignment.who, place)
            self.since = asyncio.get_running_loop().time()
            # In the journal first: a server that dies now must not find a page that it never
            # registered. The other way round only costs another registration.
            self._on_news()
            self.limits.say(abi.State.REGISTERED)
        return abi.Reply.OK, ""

    def has(self, place: Cgroup) -> bool:
        """Tell whether a process in this place is of this container."""
        if not self.assignment.who.is_met_by(place):
            return False
        return self.group is None or (
            place.controller == self.group.controller and place.is_below(self.group.path)
        )


def learned(who: ContainerMatch, place: Cgroup) -> ControlGroup:
    """Return the group of a container, from where its first process is."""
    path = place.root
    if who.cgroup and not (who.container or place.container):
        path = who.cgroup.rstrip("/")
    return ControlGroup(path, place.controller, place.container)


class Status(msgspec.Struct, frozen=True):
    """A container for people and programs; row i of the lists is share i."""

    assignment: ContainerSlices
    folder: str
    state: str
    group: ControlGroup | None
    processes: int
    held_bytes: tuple[int, ...]
    overhead_bytes: tuple[int, ...]
    swapped_bytes: tuple[int, ...] = ()
    lent_bytes: tuple[int, ...] = ()
