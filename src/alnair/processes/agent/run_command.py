"""`alnair agent run`: a slice for the time of one program."""

import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from alnair.node.cgroups import Proc
from alnair.node.vgpu import mount_folder
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.interposer_path import NAME, interposer
from alnair.processes.agent.admin_socket import Add, AdminError, Remove, ask


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
    group = _group(f"/alnair-{name}")
    try:
        assignment = ContainerSlices(
            name, ContainerMatch(cgroup=f"/{group.name}"), shares, keep=True
        )
        try:
            ask(folder, Add(assignment))
        except AdminError as error:
            raise TrialError(str(error)) from error
        try:
            environment = {**os.environ, "LD_PRELOAD": str(found.resolve())}
            pid = mount_folder.start(command, environment, group, folder / "containers" / name)
            return _wait(pid)
        finally:
            _take_back(folder, name)
    finally:
        with contextlib.suppress(OSError):  # what the program left running is still in it
            group.rmdir()


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


def _wait(pid: int) -> int:
    # An interrupt goes to the program too, and how that ends is how this ends.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return _code(os.waitpid(pid, 0)[1])
    finally:
        signal.signal(signal.SIGINT, before)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
