"""The processes of a cluster: started detached, found again by a mark in their environment.

No pid is ever written down: a file would be wrong after a kill -9 between the start of a process
and the writing, and its number may belong to somebody else later. A process carries its cluster and
component in its environment instead, which the kernel shows to its owner for as long as it lives.
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

CLUSTER_MARK = "ALNAIR_LOCAL_CLUSTER"
COMPONENT_MARK = "ALNAIR_LOCAL_COMPONENT"
COMMAND_MARK = "ALNAIR_LOCAL_COMMAND"

#: A log that is larger than this at a start is set aside, in bytes.
_LOG_LIMIT = 20 << 20
_POLL_SECONDS = 0.02
#: How long the marks of a process that lives may not be seen.
_MARKED_SECONDS = 0.5
#: Seconds from its start in which a process may be in the middle of an exec.
_YOUNG_SECONDS = 10.0
#: And between two looks at it.
_EXEC_SECONDS = 0.001
#: Lines that give a reason: of klog, cobra, Go, etcd and Python.
_TELLING = re.compile(
    r'[EF]\d{4} |Error: |panic: |\{"level":"(error|fatal|panic)"|[\w.]*(Error|Exception)\b'
)

#: How Go's runtime collects garbage: `GOGC=400` takes a quarter less of a processor to start a
#: control plane, and half as much memory again.
_GO_SETTINGS = ("GOGC", "GOMEMLIMIT")


def go_settings() -> dict[str, str]:
    """What the user's environment says to Go programs: for those that get none of the rest."""
    return {key: os.environ[key] for key in _GO_SETTINGS if key in os.environ}


@dataclass(frozen=True)
class Running:
    """A live process of a cluster."""

    component: str
    command: str
    """The digest of the command that it was started with."""
    process: psutil.Process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid


def find(folder: Path) -> list[Running]:
    """All live processes of the cluster in this folder, children of its components included."""
    user = os.getuid()
    found = []
    for process in psutil.process_iter():
        if not _may_be_of(process, folder):
            continue
        try:
            if process.uids().real != user or process.status() == psutil.STATUS_ZOMBIE:
                continue
            environment = process.environ()
        except (psutil.Error, OSError):
            continue
        component = environment.get(COMPONENT_MARK)
        if component is not None and environment.get(CLUSTER_MARK) == str(folder):
            found.append(Running(component, environment.get(COMMAND_MARK, ""), process))
    return found


def _may_be_of(process: psutil.Process, folder: Path) -> bool:
    """Whether a process may have a cluster's mark: one read where the kernel has a file for it."""
    until = 0.0
    try:
        while not (text := _environment(process.pid)):
            # In the middle of an exec it has no environment, as kernel threads and those that have
            # ended; but these have no program, either.
            os.readlink(f"/proc/{process.pid}/exe")  # noqa: PTH115 (a path takes longer)
            until = until or time.monotonic() + _MARKED_SECONDS
            is_young = time.time() - process.create_time() < _YOUNG_SECONDS
            if not is_young or time.monotonic() > until:
                return False
            time.sleep(_EXEC_SECONDS)
    except FileNotFoundError:
        return not os.path.exists("/proc/self")  # noqa: PTH110 (likewise)
    except (OSError, psutil.Error):
        return False
    return f"{CLUSTER_MARK}={folder}\0".encode() in text


def _environment(pid: int) -> bytes:
    # Of hundreds of processes it is asked about again and again.
    with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (likewise)
        return file.read()


def components(processes: Iterable[Running]) -> dict[str, Running]:
    """The main process of each component: the one that no other of the component started."""
    listed = list(processes)
    pids = {(running.component, running.pid) for running in listed}
    found: dict[str, Running] = {}
    for running in listed:
        with contextlib.suppress(psutil.Error):
            if (running.component, running.process.ppid()) not in pids:
                found[running.component] = running
    return found


def is_alive(process: psutil.Process) -> bool:
    """Whether the process runs; one that has ended and was not collected yet does not."""
    try:
        if not process.is_running():
            return False
        # The first thread of a killed process may have ended (and show as a zombie) while others
        # still hold its files and ports.
        return process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
    except psutil.Error:
        return False


def spawn(
    folder: Path,
    component: str,
    command: Sequence[str],
    digest: str,
    log: Path,
    environment: Mapping[str, str],
    enter: Sequence[str] = (),
) -> psutil.Process | None:
    """Starts a component in a session of its own, detached from this process.

    Args:
        folder: The cluster's folder, also the working folder of the process.
        component: Its name.
        command: Program and arguments.
        digest: Tells this command from others, kept in the process's environment.
        log: Where its output is appended.
        environment: Its environment, without the marks.
        enter: A command that runs others in other namespaces; (): nothing is entered.

    Returns:
        The process, or None when it has ended already.
    """
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > _LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))
    marks = {CLUSTER_MARK: str(folder), COMPONENT_MARK: component, COMMAND_MARK: digest}
    # The shell starts the program in the background and leaves, so that init adopts the program: it
    # is nobody's zombie when it ends, and this process has no child to look after.
    launcher = ["/bin/sh", "-c", 'log=$1; shift; "$@" >>"$log" 2>&1 & echo $!', "sh", str(log)]
    result = subprocess.run(
        [*enter, *launcher, *command],
        cwd=folder,
        env={**environment, **marks},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    if enter:
        # What was printed is its number in those namespaces.
        return _soon(folder, component)
    try:
        return psutil.Process(int(result.stdout))
    except psutil.NoSuchProcess:
        return None


def _soon(folder: Path, component: str) -> psutil.Process | None:
    """The process of a component that was just started: in the middle of an exec none has marks."""
    until = time.monotonic() + _MARKED_SECONDS
    while True:
        if found := components(find(folder)).get(component):
            return found.process
        if time.monotonic() > until:
            return None
        time.sleep(_POLL_SECONDS)


async def stop(processes: Iterable[psutil.Process], number: int, deadline: float) -> None:
    """Signals processes and waits until they have ended; kills those that live past the deadline.

    Args:
        processes: Those to stop.
        number: The first signal.
        deadline: Seconds until SIGKILL.
    """
    living = [process for process in processes if is_alive(process)]
    _signal(living, number)
    until = time.monotonic() + deadline
    killed = number == signal.SIGKILL
    while living := [process for process in living if is_alive(process)]:
        if not killed and time.monotonic() > until:
            _signal(living, signal.SIGKILL)
            killed = True
        await asyncio.sleep(_POLL_SECONDS)


def _signal(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
            if number != signal.SIGCONT:
                # A stopped process handles no signal but SIGKILL until it is continued.
                process.send_signal(signal.SIGCONT)


def last_words(log: Path, limit: int = 400) -> str:
    """The last line of a log that looks like a reason, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16384))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return "it wrote no log"
    lines = [line.strip() for line in lines if line.strip()]
    telling = [line for line in lines if _TELLING.match(line)]
    return (telling or lines or ["it wrote no log"])[-1][:limit]
