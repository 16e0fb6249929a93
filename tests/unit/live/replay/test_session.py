"""What an interrupt leaves undone of what comes before the replay itself."""

import asyncio

import pytest

from alnair.live.replay.session import done_before


async def test_what_is_long_ends_at_an_interrupt() -> None:
    stop, made = asyncio.Event(), []

    async def make_nodes() -> None:
        for node in range(1000):
            made.append(node)
            if node == 2:
                stop.set()
            await asyncio.sleep(0)

    assert not await done_before(stop, make_nodes())
    assert len(made) < 10


async def test_what_is_done_is_done_and_what_fails_fails() -> None:
    async def work() -> None: ...

    async def fail() -> None:
        raise ValueError("no such node")

    assert await done_before(asyncio.Event(), work())
    with pytest.raises(ValueError, match="no such node"):
        await done_before(asyncio.Event(), fail())
