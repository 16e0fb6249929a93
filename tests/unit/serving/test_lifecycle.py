"""How a process ends: asked to, or by itself; it cleans up either way."""

import asyncio
import os
import signal

import pytest

from alnair.serving.lifecycle import run_until_stopped


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_work_which_cleans_up_first(number: signal.Signals) -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ends.append("clean")

    await run_until_stopped(work())
    assert ends == ["clean"]


async def test_work_that_fails_fails_the_process() -> None:
    async def work() -> None:
        raise OSError("no folder")

    with pytest.raises(OSError, match="no folder"):
        await run_until_stopped(work())
