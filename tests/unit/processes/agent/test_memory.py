"""What the agent's process keeps of the memory that it does not use any more."""

import asyncio
import contextlib
import platform
import subprocess
import sys

import pytest

from alnair.processes.agent.memory import give_back

#: Threads that each hold 8 MiB in small pieces, and let go of it; says by how much it has grown.
PROGRAM = """
import ctypes, sys, threading
from alnair.processes.agent.memory import keep_little
if sys.argv[1] == "little":
    assert keep_little()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
gate = threading.Barrier(4)
def work():
    gate.wait()
    held = [libc.malloc(5000) for _ in range(1600)]
    last = libc.malloc(64)
    gate.wait()
    for one in held:
        libc.free(one)
    gate.wait()
def rss():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
before = rss()
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
libc.malloc_trim(0) if sys.argv[1] == "little" else None
print(rss() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no arenas")
def test_what_threads_have_freed_is_not_kept() -> None:
    def grown(how: str) -> int:
        command = [sys.executable, "-c", PROGRAM, how]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert grown("little") < 4 << 10


async def test_free_pages_are_given_back_until_it_is_cancelled() -> None:
    giving = asyncio.create_task(give_back(0.001))
    await asyncio.sleep(0.02)
    assert not giving.done()
    giving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await giving


def test_what_stays_is_not_looked_through_for_cycles_again() -> None:
    program = """
import asyncio, gc
from alnair.processes.agent.memory import look_for_cycles_less
async def main():
    looking = asyncio.create_task(look_for_cycles_less(0.01))
    async with asyncio.timeout(20):
        while not gc.get_freeze_count():
            await asyncio.sleep(0.01)
asyncio.run(main())
print(gc.get_freeze_count(), gc.isenabled())
"""
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(said[0]) > 1000
    assert said[1] == "True", "cycles of what comes later are found"
