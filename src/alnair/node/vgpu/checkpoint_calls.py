"""Suspends and resumes processes: `python -m alnair.node.vgpu.checkpoint_calls VERB PID…`.

A process of its own, for a driver may hang or crash. It asks the driver (release 570, CUDA 12.8,
and newer) to lock each process, whose calls then wait, and to bring what it holds of the GPUs into
its host memory; or back. All of them or none: what was done before one failed is undone. Says so in
a line of JSON: "" or why not. VERB is suspend or resume.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Final

import msgspec

from alnair.node import driver_root
from alnair.node.vgpu import context_probe

#: Seconds that a process is waited for until its work is done and it can be locked.
_LOCK_MS: Final = 10_000
#: Seconds after which the kernel ends this process, should nobody be left who does.
_LAST_SECOND: Final = 600
#: Seconds that all of it may take: memory goes over the link, at some GB/s.
PATIENCE: Final = 300.0


class _State(IntEnum):
    """`CUprocessState`."""

    RUNNING = 0
    LOCKED = 1
    CHECKPOINTED = 2


class _LockArgs(ctypes.Structure):
    """`CUcheckpointLockArgs`."""

    _fields_ = (
        ("timeout_ms", ctypes.c_uint),
        ("reserved0", ctypes.c_uint),
        ("reserved1", ctypes.c_uint64 * 7),
    )


class _CallError(Exception):
    """The driver refused; says what."""


class _Driver:
    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        if not hasattr(self._library, "cuCheckpointProcessLock"):
            raise _CallError("the driver is older than release 570 and cannot suspend processes")
        self("cuInit", 0)

    def __call__(self, name: str, *arguments: object) -> None:
        if result := getattr(self._library, name)(*arguments):
            raise _CallError(f"{name} gave CUresult {result}")

    def state(self, pid: int) -> int:
        found = ctypes.c_int()
        self("cuCheckpointProcessGetState", pid, ctypes.byref(found))
        return found.value

    def suspend(self, pid: int) -> None:
        if self.state(pid) == _State.RUNNING:
            locking = _LockArgs(timeout_ms=_LOCK_MS)
            self("cuCheckpointProcessLock", pid, ctypes.byref(locking))
        if self.state(pid) == _State.LOCKED:
            self("cuCheckpointProcessCheckpoint", pid, None)

    def resume(self, pid: int) -> None:
        if self.state(pid) == _State.CHECKPOINTED:
            self("cuCheckpointProcessRestore", pid, None)
        if self.state(pid) == _State.LOCKED:
            self("cuCheckpointProcessUnlock", pid, None)


def _each(verb: str, pids: Iterable[int]) -> str:
    try:
        named = os.environ.get(context_probe.LIBRARIES, "").split(":")
        driver_root.load(Path(path) for path in named if path)
        driver = _Driver()
    except (OSError, _CallError) as error:
        return str(error)
    do, undo = driver.suspend, driver.resume
    if verb == "resume":
        do, undo = undo, do
    done = []
    for pid in pids:
        try:
            done.append(pid)
            do(pid)
        except _CallError as error:
            if not Path(f"/proc/{pid}").exists():
                continue  # it has ended
            for other in reversed(done):
                with contextlib.suppress(_CallError):
                    undo(other)
            return f"process {pid}: {error}"
    return ""


async def ask(verb: str, pids: Iterable[int], patience: float = PATIENCE) -> str:
    """Suspend or resume processes; return "" or why not.

    Args:
        verb: "suspend" or "resume".
        pids: The host's.
        patience: Seconds.
    """
    words = ["-m", "alnair.node.vgpu.checkpoint_calls", verb, *map(str, pids)]
    environment = context_probe.environment("", os.environ)
    environment.pop("CUDA_VISIBLE_DEVICES")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(patience):
            out, error = await process.communicate()
        return msgspec.json.decode(out, type=str)
    except TimeoutError:
        return f"the driver has not answered for {patience:g} s"
    except msgspec.DecodeError:
        return f"it ended with exit {process.returncode}: {error.decode(errors='replace')[-200:]}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    signal.alarm(_LAST_SECOND)
    said = _each(sys.argv[1], [int(word) for word in sys.argv[2:]])
    sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
    sys.stdout.flush()
    # What the driver does when a process ends in order may hang, too: the kernel tidies up.
    os._exit(0)
