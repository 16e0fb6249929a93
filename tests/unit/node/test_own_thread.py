"""A call that does not come back keeps nothing from ending."""

import asyncio
import subprocess
import sys
import threading

import pytest

from alnair.node.own_thread import in_own_thread

HANGS = """
import asyncio, threading
from alnair.node.own_thread import in_own_thread

async def main():
    began = threading.Event()
    def hang():
        began.set()
        threading.Event().wait()
    hanging = in_own_thread(hang)
    while not began.is_set():
        await asyncio.sleep(0.001)
    print(hanging.cancel())

asyncio.run(main())
"""


async def test_what_it_returns_and_raises_comes_back() -> None:
    assert await in_own_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_own_thread(divmod, 1, 0)


async def test_whoever_no_longer_waits_is_not_told() -> None:
    done = in_own_thread(int)
    done.cancel()
    await in_own_thread(int)  # by then the first has ended, most often
    with pytest.raises(asyncio.CancelledError):
        await done


async def test_a_thread_whose_call_came_back_does_the_next_one() -> None:
    first = await in_own_thread(threading.current_thread)
    while not first.name.endswith("idle"):  # noqa: ASYNC110 (it has answered, and is about to wait)
        await asyncio.sleep(0.001)
    # One that an earlier test left may be idle, too.
    there = threading.enumerate()
    assert await in_own_thread(threading.current_thread) in there


async def test_one_that_hangs_is_left_to_it() -> None:
    over = threading.Event()
    hanging = in_own_thread(over.wait)
    assert await in_own_thread(divmod, 7, 2) == (3, 1)
    assert not hanging.done()
    over.set()
    assert await hanging


def test_a_process_ends_though_a_call_hangs() -> None:
    script = [sys.executable, "-c", HANGS]
    ended = subprocess.run(script, check=True, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("True\n", "")
