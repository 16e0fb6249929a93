"""The processes on a GPU: who holds memory by the driver's lists, and what each of them uses."""

import os
import time
from collections import deque
from typing import Any, Final, NamedTuple

from alnair.node.cgroups import started
from alnair.node.readings.calls import Calls
from alnair.node.readings.device import PERIOD_US, Busy
from alnair.profiler.process_samples import Row, Use, asked_since, believed, mean_of, within
from alnair.profiler.samples import ProcessSample

_TICK_US: Final = 1_000_000 // os.sysconf("SC_CLK_TCK")
#: Microseconds of which one of the driver's own samples is.
_SAMPLE_US: Final = 1_000_000 // 6
#: Answers that are kept where no reading comes: two minutes of them.
_MOST: Final = 800
_LISTS: Final = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)


class Listed(NamedTuple):
    """Pid → bytes, None where the driver does not say; and those that are clients of MPS."""

    memory: dict[int, int | None]
    mps: frozenset[int] = frozenset()


class ProcessLists:
    """Asks who is on a GPU or MIG device: who computes, who draws, and the clients of MPS."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        #: Of the lists, the form that this driver writes as the package reads it.
        self._form = ""

    def read(self, handle: Any, total: int | None) -> Listed:
        """Ask.

        Args:
            handle: Of the GPU or MIG device.
            total: Bytes that it has; None if not known.

        Raises:
            NvmlError: The GPU is not there.
        """
        found = self._lists(handle, self._form)
        if not self._form and any(_is_scrambled(one, total) for some in found for one in some):
            # Some drivers write the second layout where the third is asked for.
            self._form = "_v2"
            found = self._lists(handle, self._form)
        memory: dict[int, int | None] = {}
        for some in found:
            for process in some:
                # A process that computes and draws is in both lists, with the same bytes.
                old, new = memory.get(process.pid), process.usedGpuMemory
                memory[process.pid] = max((b for b in (old, new) if b is not None), default=None)
        return Listed(memory, mps=frozenset(process.pid for process in found[2]))

    def _lists(self, handle: Any, form: str) -> list[Any]:
        found = []
        for name in _LISTS:
            needed = name == _LISTS[0]
            listed = self._calls.ask(name + form, handle, nothing=[], needed=needed)
            if listed is None and not form:
                listed = self._calls.ask(f"{name}_v2", handle, nothing=[])
            found.append(listed or [])
        return found


def _is_scrambled(process: Any, total: int | None) -> bool:
    used = process.usedGpuMemory
    return process.pid == 0 or (used is not None and total is not None and used > total)


class Used(NamedTuple):
    """What the processes of a GPU used; and how many had a use that are not listed on it."""

    use: Use
    unmapped: int


class ProcessUse:
    """Asks what the processes of a GPU use, by the newest function that there is."""

    def __init__(self, calls: Calls, handle: Any) -> None:
        self._calls = calls
        self._handle = handle
        self._newest = 0
        self._asked_us = 0
        #: Since the last reading: of how many microseconds, and what was used.
        self._answers = deque[tuple[int, Use]](maxlen=_MOST)

    def read(self, listed: Listed) -> Used | None:
        """Ask what was used since the last reading; None if that is not measured.

        Raises:
            NvmlError: The GPU is not there.
        """
        if not self._ask():
            return None
        known, unmapped = list[tuple[int, Use]](), set[int]()
        for length, use in self._answers:
            unmapped |= use.keys() - listed.memory.keys()
            # One that names nobody here tells of another namespace's process alone.
            if here := {pid: parts for pid, parts in use.items() if pid in listed.memory}:
                known.append((length, here))
        self._answers.clear()
        return Used(mean_of(known), len(unmapped))

    def note(self) -> None:
        """Ask for the next reading, too, which is the finer the more often that is done.

        Raises:
            NvmlError: The GPU is not there.
        """
        self._ask()

    def _ask(self) -> bool:
        """Ask what was used since the last time; tells whether that is measured."""
        now_us = time.time_ns() // 1000
        since = asked_since(self._newest, now_us, PERIOD_US)
        for name in ("nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"):
            rows = self._calls.ask(name, self._handle, since, nothing=[])
            if rows is not None:
                break
        else:
            return False
        found = believed(map(_row, rows), since=since, now_us=now_us, born_us=born_us)
        if found.use:
            # What ran before the last question was told then: it is of now, after a pause of all.
            most = max(now_us - self._asked_us, _SAMPLE_US)
            self._answers.append((max(1, min(found.newest - since, most)), found.use))
        self._newest, self._asked_us = found.newest, now_us
        return True


def _row(found: Any) -> Row:
    others = max(found.encUtil, found.decUtil, getattr(found, "jpgUtil", 0))
    return Row(found.pid, found.timeStamp, found.smUtil, found.memUtil, others)


def born_us(pid: int) -> int | None:
    """When a process began, microseconds since the epoch; None if it is none or has ended."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)  # read often: a third of what open costs
        try:
            stat = os.read(file, 1024).decode(errors="replace")
        finally:
            os.close(file)
    except OSError:
        return None
    if stat.rpartition(")")[2].split()[0] in "ZX":
        return None
    boot_us = (time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // 1000
    return boot_us + started(stat) * _TICK_US


def samples_of(listed: Listed, use: Used | None, busy: Busy) -> tuple[ProcessSample, ...]:
    """Return what each listed process does; one of which nothing is said does nothing."""
    if use is None:
        return tuple(
            ProcessSample(pid, memory_bytes=memory) for pid, memory in sorted(listed.memory.items())
        )
    util, memory_util = (busy.util, busy.memory) if busy.is_mean else (None, None)
    sm = within({pid: part for pid, (part, _) in use.use.items()}, util)
    copied = within({pid: part for pid, (_, part) in use.use.items()}, memory_util)
    return tuple(
        ProcessSample(pid, sm.get(pid, 0.0), copied.get(pid, 0.0), memory)
        for pid, memory in sorted(listed.memory.items())
    )
