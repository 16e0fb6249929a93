"""How the C library keeps memory for this process: little that is free, and in one place.

glibc gives each thread an arena of its own, which keeps what was freed in it; the agent does its
readings in threads that come and go, one of them imports most of its code, and Python lets only one
of them run at a time. So one arena does, and what is large goes back to the system at once.

Source: mallopt(3), malloc_trim(3), malloc.h of glibc.
"""

import asyncio
import ctypes
import gc
from typing import Final

from alnair.node.own_thread import in_own_thread

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
#: Bytes: of a free end of the heap, from which on it is given back, and of what is given its own
#: pages. By itself, glibc lets both grow to tens of MiB.
_TRIM: Final = 256 << 10
_OWN_PAGES: Final = 256 << 10
#: Seconds between looks for free pages amid used ones, which take some milliseconds.
_EVERY: Final = 60.0
#: Objects that are made until Python looks for cycles among them; a reading makes some thousand.
_ALLOCATIONS: Final = 20_000


def keep_little() -> bool:
    """Tell the C library so, before there are threads; False: this one has no such settings."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False  # musl, for one, has neither arenas nor this
    wanted = (_ARENA_MAX, 1), (_MMAP_THRESHOLD, _OWN_PAGES), (_TRIM_THRESHOLD, _TRIM)
    results = [mallopt(option, value) for option, value in wanted]
    return results == [1, 1, 1]


async def give_back(every: float = _EVERY) -> None:
    """Give free pages back to the system now and then, until cancelled."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        trim = None
    while True:
        await asyncio.sleep(every)
        if trim is not None:
            await in_own_thread(trim, 0)


async def look_for_cycles_less(after: float = _EVERY) -> None:
    """Let Python's collector of cycles leave alone what there is after some time: it stays.

    By itself it looks through all of it again and again, a tenth of a second each time, in which
    nothing else is done.
    """
    await asyncio.sleep(after)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    await asyncio.Event().wait()
