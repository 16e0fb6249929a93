"""Asking GPUs one after the other, in a process that the machine lets stand still."""

import asyncio
import threading
import time

from alnair.node.gpu_rounds import BUDGET, Rounds


async def test_a_gpu_that_is_asked_while_this_process_stands_still_is_not_taken_to_hang() -> None:
    asked, over = threading.Event(), threading.Event()

    def ask(uuid: str) -> str:
        asked.set()
        over.wait()
        return uuid

    rounds = Rounds(ask)
    answers = asyncio.create_task(rounds.all(["a", "b"]))
    while not asked.is_set():  # noqa: ASYNC110 (a thread sets it)
        await asyncio.sleep(0.001)
    time.sleep(3 * BUDGET)  # noqa: ASYNC251 (nothing of this process goes on)
    asyncio.get_running_loop().call_later(0.01, over.set)
    assert await answers == {"a": "a", "b": "b"}
    assert not rounds.hanging
