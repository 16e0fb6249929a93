"""The server in the fake's time: what it makes of clocks does not depend on the machine."""

import asyncio
import os
import time

from alnair.node.readings.processes import born_us
from native.fake import Fake
from native.virtual_loop import VirtualLoop, virtual_time


def test_a_process_grows_older_as_fast_as_the_fake_gpu_works() -> None:
    """Else samples of a process would be taken for those of one that had its pid before."""
    with Fake(clock="virtual") as fake:
        loop = VirtualLoop(fake)
        with virtual_time(loop):
            loop.join()
            before = born_us(os.getpid())
            began = time.clock_gettime(time.CLOCK_BOOTTIME)
            loop.run_until_complete(asyncio.sleep(1000))
            assert born_us(os.getpid()) == before
            assert time.clock_gettime(time.CLOCK_BOOTTIME) - began >= 1000
            loop.leave()
        loop.close()
