"""`alnair agent run`: a slice for the time of one program."""

import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from alnair.node.cgroups import Proc
from alnair.node.vgpu import mount_folder
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.interposer_path import NAME, interposer
from alnair.processes.agent import trial_group
from alnair.processes.agent.admin_socket import Add, AdminError, Remove, ask

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class TrialError(Exception):
    """It cannot be run; says why and what to do."""


def run_with_slices(
    folder: Path, shares: tuple[Share, ...], command: Sequence[str], library: Path | None
) -> int:
    """Run a program with slices; return its exit code, 128 and the number if a signal ended it.

    Args:
        folder: The agent's.
        shares: The slices.
        command: The program and its arguments.
        library: The interposer; None to look where it is built or installed.

    Raises:
        TrialError: No agent, no right, or no library.
    """
    found = library or interposer()
    if found is None or not found.is_file():
        raise TrialError(
            f"{library or NAME} is not there: give --library, or in a checkout make -C native"
        )
    name = f"run-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    with _signals_passed_on() as pass_on:
        return _run(folder, shares, command, found, name, pass_on)


def _run(
    folder: Path,
    shares: tuple[Share, ...],
    command: Sequence[str],
    library: Path,
    name: str,
    pass_on: Callable[[int], None],
) -> int:
    group = _group(f"/alnair-{name}")
    trial_group.remove_left_behind(group.parent, lambda old: _forget(folder, old))
    try:
        assignment = ContainerSlices(
            name, ContainerMatch(cgroup=f"/{group.name}"), shares, keep=True
        )
        try:
            gpus = ask(folder, Add(assignment)).gpus
        except AdminError as error:
            raise TrialError(str(error)) from error
        try:
            environment = {**os.environ, "LD_PRELOAD": str(library.resolve())}
            # No runtime hides the other GPUs' devices here: on those it would have no slice.
            if gpus:
                environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
            pid = mount_folder.start(command, environment, group, folder / "containers" / name)
            pass_on(pid)
            return _code(os.waitpid(pid, 0)[1])
        finally:
            _take_back(folder, name)
    finally:
        trial_group.remove(group)


def _forget(folder: Path, name: str) -> None:
    """Remove the container of a run that was killed, if this agent has it."""
    with contextlib.suppress(AdminError):
        ask(folder, Remove(name))


def _take_back(folder: Path, name: str) -> None:
    """Remove the container; if the agent is gone, how the program ended is told nevertheless."""
    try:
        ask(folder, Remove(name))
    except AdminError as error:
        print(
            f"warning: {error}; once it serves again: alnair agent container remove {name}",
            file=sys.stderr,
        )


def _group(path: str) -> Path:
    """Make a control group, in v2 where it is mounted."""
    mounts = Proc().mounts
    for controller in ("", "pids", "memory", "name=systemd"):
        folder = mounts.folder(path, controller)
        if folder is not None:
            try:
                folder.mkdir()
            except OSError as error:
                raise TrialError(
                    f"{folder} cannot be made: {error.strerror}; this needs root"
                ) from error
            return folder
    raise TrialError("no control groups are mounted here")


@contextlib.contextmanager
def _signals_passed_on() -> Iterator[Callable[[int], None]]:
    """Let the program end of what would end this process: how it ends is how this ends.

    Yields what is told of the program once it runs; signals that came before go to it then.
    """
    programs: list[int] = []
    waiting: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if not programs:
            waiting.append(number)
        elif number != signal.SIGINT:  # a terminal's interrupt goes to the program, too
            _kill(programs[0], number)

    def begin(pid: int) -> None:
        programs.append(pid)
        for number in waiting:
            _kill(pid, number)

    # What is ignored stays so, for the program as well: `nohup` is one.
    numbers = [n for n in _ENDING if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield begin
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
