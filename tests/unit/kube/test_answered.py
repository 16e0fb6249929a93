"""A request that was sent gets its answer, also if who sent it is told to stop."""

import asyncio

import pytest

from alnair.kube import answered as module
from alnair.kube.answered import answered


async def cancelled(task: "asyncio.Task[str]") -> None:
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_who_is_cancelled_waits_for_the_answer() -> None:
    said = []

    async def request() -> str:
        await asyncio.sleep(0.05)
        said.append("bound")
        return "bound"

    assert await answered(request()) == "bound"
    await cancelled(asyncio.create_task(answered(request())))
    assert said == ["bound", "bound"]


async def test_what_fails_meanwhile_is_told_to_nobody() -> None:
    async def request() -> str:
        await asyncio.sleep(0.05)
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        await answered(request())
    await cancelled(asyncio.create_task(answered(request())))


async def test_no_answer_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    ended = asyncio.Event()

    async def request() -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return ""

    await cancelled(asyncio.create_task(answered(request())))
    await asyncio.sleep(0)
    assert ended.is_set(), "the request itself is given up, too"
