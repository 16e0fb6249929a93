"""A program in a container of the least kind, a control group and two mounts: for trying slices.

This is what a container runtime does for a real one, so the library finds everything in its place:
the folder read-only at /run/alnair/vgpu, and in it the counters writable. Needs root.
"""

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from alnair.node.vgpu.pages import abi

_CLONE_NEWNS: Final = 0x20000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND = 1, 32, 4096
_MS_REC, _MS_PRIVATE = 16384, 1 << 18
#: Exit codes of shells, for a command that cannot be run.
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127


def start(command: Sequence[str], environment: Mapping[str, str], group: Path, folder: Path) -> int:
    """Start a program; return its pid.

    Args:
        command: The program and its arguments.
        environment: Of the program.
        group: Folder of the control group that it is to be in; it exists.
        folder: The container's, as the server has prepared it.
    """
    if pid := os.fork():
        return pid
    code = _NOT_EXECUTABLE
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        _mount_all(folder)
        os.execvpe(command[0], list(command), dict(environment))
    except FileNotFoundError as error:
        code = _NOT_FOUND
        _say(f"{command[0]}: {error.strerror}")
    except OSError as error:
        # Of a failed mount, the text says what it was.
        _say(f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}")
    finally:
        os._exit(code)


def _mount_all(folder: Path) -> None:
    """Put the container's folder in its place, seen by this process and its children only."""
    place = Path(abi.FOLDER)
    _check(_libc().unshare(_CLONE_NEWNS), "a mount namespace cannot be made")
    _mount("", "/", _MS_REC | _MS_PRIVATE)
    # Opened before the next mount hides it.
    source = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    place.parent.mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", str(place.parent), 0, "tmpfs")
    place.mkdir()
    _mount(f"/proc/self/fd/{source}", str(place), _MS_BIND)
    _mount(f"/proc/self/fd/{source}/counters", str(place / "counters"), _MS_BIND)
    _mount("", str(place), _MS_BIND | _MS_REMOUNT | _MS_RDONLY)
    os.close(source)


def _mount(source: str, target: str, flags: int, kind: str = "") -> None:
    made = _libc().mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None
    )
    _check(made, f"{target} cannot be mounted")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _say(text: str) -> None:
    os.write(2, f"error: {text}\n".encode())
