"""What NVML says that processes hold, where its pids may not be the ones that we know.

A driver tells pids of its own namespace or of ours; some tell none at all in a container. Which it
is, is learnt once, by a process that holds a context while nothing else uses the GPU.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

#: The three ways, in words for the table.
SAME, MAPPED, WHOLE = "pids as here", "pids of another namespace, mapped", "none: by the whole GPU"


class NvmlAccount:
    """Bytes of processes on one GPU.

    Args:
        api: What has the functions of `pynvml`, initialised.
        handle: Of the GPU.

    Attributes:
        way: SAME, MAPPED or WHOLE; "" until it has learnt.
    """

    PERIOD = 0.005

    def __init__(self, api: Any, handle: Any) -> None:
        self._api, self._handle = api, handle
        self.way = ""
        self._others = frozenset(self._table())
        self._idle = self._whole()
        self._peaks: dict[str, int] = {}
        self._watched: dict[str, list[int]] = {}

    def learn(self, pid: int) -> None:
        """Find out how processes are told, by one that holds a context: the only one of ours."""
        table = self._table()
        # A pid of another namespace may be one of ours by chance: it was there before, then.
        if pid not in self._others and table.get(pid):
            self.way = SAME
        elif any(held for other, held in table.items() if other not in self._others):
            self.way = MAPPED
        else:
            self.way = WHOLE

    def used(self, pids: list[int]) -> int:
        """Bytes of these processes.

        Where pids must be mapped they are all that came since the beginning, and where there are
        none it is by how much the use of the GPU grew: there, nobody else may use it.
        """
        if self.way == WHOLE:
            return self.growth()
        table = self._table()
        if self.way == MAPPED:
            return sum(held for pid, held in table.items() if pid not in self._others)
        return sum(held for pid, held in table.items() if pid in pids)

    def growth(self) -> int:
        """By how many bytes the use of the whole GPU grew since the beginning."""
        return max(0, self._whole() - self._idle)

    def watch(self, tag: str, pids: list[int]) -> None:
        """Ask 200 times a second from now on; peaks shorter than that are missed.

        The first reading is taken here: on a busy machine the thread may come late.
        """
        self._peaks[tag], self._watched[tag] = 0, pids
        with suppress(self._api.NVMLError):
            self.note(tag, self.used(pids))
        threading.Thread(target=self._sample, args=(tag, pids), daemon=True).start()

    def note(self, tag: str, held: int) -> None:
        """Count a reading that was taken elsewhere, if `tag` is watched."""
        if tag in self._watched:
            self._peaks[tag] = max(self._peaks[tag], held)

    def peak(self, tag: str) -> int:
        """The most bytes that were seen since `watch`, and the end of it."""
        self._watched.pop(tag, None)
        return self._peaks[tag]

    def _sample(self, tag: str, pids: list[int]) -> None:
        while self._watched.get(tag) is pids:
            with suppress(self._api.NVMLError):
                self.note(tag, self.used(pids))
            time.sleep(self.PERIOD)

    def _table(self) -> dict[int, int]:
        with suppress(self._api.NVMLError):
            found = self._api.nvmlDeviceGetComputeRunningProcesses(self._handle)
            return {int(one.pid): int(one.usedGpuMemory or 0) for one in found}
        return {}

    def _whole(self) -> int:
        return int(self._api.nvmlDeviceGetMemoryInfo(self._handle).used)


def settled(read: Callable[[], int], seconds: float = 2.0) -> int:
    """A reading that is not 0, or 0 after some seconds: NVML may be late."""
    end = time.monotonic() + seconds
    while not (found := read()) and time.monotonic() < end:
        time.sleep(0.01)
    return found
