"""A call that does not come back keeps nothing from ending."""

import asyncio
import subprocess
import sys

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
    try:
        async with asyncio.timeout(0.1):
            await in_own_thread(hang)
    except TimeoutError:
        print(began.is_set())

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


def test_a_process_ends_though_a_call_hangs() -> None:
    script = [sys.executable, "-c", HANGS]
    ended = subprocess.run(script, check=True, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("True\n", "")
