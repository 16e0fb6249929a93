"""A stand-in for the MPS daemon, and what tests of its care share."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from alnair.node.mps import MpsDaemon, MpsOptions, MpsState
from alnair.node.mps_control import Control

STAND_IN = (sys.executable, "-S", "-E", str(Path(__file__).with_name("mps_stand_in.py")))


def options(folder: Path, **changes: object) -> MpsOptions:
    """Short times: what takes minutes on a node takes parts of a second here."""
    return MpsOptions(
        **{
            "folder": folder,
            "command": STAND_IN,
            "check_s": 0.05,
            "answer_s": 10.0,  # a client is a program: one that is slow to start is no fault here
            "first_delay_s": 0.05,
            "most_delay_s": 0.4,
            **changes,
        }
    )


@asynccontextmanager
async def cared_for(daemon: MpsDaemon) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(daemon.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)


async def healthy(daemon: MpsDaemon, restarts: int = 0) -> None:
    await until(
        lambda: daemon.health.state is MpsState.HEALTHY and daemon.health.restarts >= restarts
    )


def pid_of(folder: Path) -> int:
    return int((folder / "daemon").read_text().split()[0])


def faults(folder: Path, words: str) -> None:
    (folder / "pipe").mkdir(parents=True, exist_ok=True)
    (folder / "pipe" / "faults").write_text(words)


async def ask(folder: Path, question: str) -> str:
    control = Control(STAND_IN, {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe")}, answer_s=60.0)
    return await control.ask(question)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
