"""A job that is followed, and left."""

import asyncio
from typing import Any

import pytest

from alnair.live.training import watching


async def test_who_is_cancelled_while_the_log_ends_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends, may_end = asyncio.Event(), asyncio.Event()

    async def stream(*_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.set()
            await may_end.wait()

    async def left(*_: object) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(watching, "stream", stream)
    monkeypatch.setattr(watching, "_until_it_ends", left)
    nothing: Any = None
    task = asyncio.create_task(watching.watch(nothing, nothing, asyncio.Event(), nothing, nothing))
    await ends.wait()
    task.cancel()
    may_end.set()
    await asyncio.wait([task])
    assert task.cancelled()
