"""MIG devices: their memory and processes, and how busy their GPU instance is, by GPM."""

import time
from collections import Counter
from typing import Any

import msgspec

from alnair.node.readings import gpm
from alnair.node.readings.calls import Calls
from alnair.node.readings.device import Busy, memory_of
from alnair.node.readings.gpm import Gpm
from alnair.node.readings.processes import ProcessLists, samples_of
from alnair.profiler.samples import GpuSample


class MigDevices:
    """Reads the MIG devices of a GPU, however they change.

    Args:
        calls: Of the GPU.
        handle: Of the GPU.
        lists: Asks for processes.
    """

    def __init__(self, calls: Calls, handle: Any, lists: ProcessLists) -> None:
        self._calls = calls
        self._handle = handle
        self._lists = lists
        #: By GPU instance.
        self._gpm: dict[int, Gpm] = {}

    def read(self) -> tuple[dict[str, GpuSample], dict[str, int]]:
        """Return the samples by UUID, and the bytes in use with the driver's own part.

        Raises:
            NvmlError: The GPU is not there.
        """
        devices = [device for one in self._handles() if (device := self._identity(one))]
        # Several compute instances of one GPU instance cannot be told apart by it.
        sharing = Counter(instance for _, _, instance in devices)
        for instance in self._gpm.keys() - sharing.keys():
            self._gpm.pop(instance).close()
        samples: dict[str, GpuSample] = {}
        used: dict[str, int] = {}
        for handle, uuid, instance in devices:
            memory = memory_of(self._calls, handle)
            if memory is None:
                continue  # it was just destroyed
            busy = self._busy(instance) if sharing[instance] == 1 else {}
            listed = self._lists.read(handle, memory.total)
            processes = samples_of(listed, None, Busy())
            util = busy.get(gpm.ANY, busy.get(gpm.SM))
            if len(processes) == 1:  # nobody else can have been it
                processes = (msgspec.structs.replace(processes[0], sm=util),)
            used[uuid] = memory.used + memory.reserved
            samples[uuid] = GpuSample(
                time.monotonic(),
                util=util,
                memory_bytes=memory.used,
                memory_total=memory.total,
                profiling=gpm.named(busy),
                processes=processes,
            )
        return samples, used

    def close(self) -> None:
        """Give back what GPM has."""
        for one in self._gpm.values():
            one.close()
        self._gpm = {}

    def _busy(self, instance: int) -> dict[int, float]:
        if instance not in self._gpm:
            self._gpm[instance] = Gpm(self._calls, self._handle, instance)
        return self._gpm[instance].read()

    def _handles(self) -> list[Any]:
        most = self._calls.ask("nvmlDeviceGetMaxMigDeviceCount", self._handle) or 0
        name = "nvmlDeviceGetMigDeviceHandleByIndex"
        found = (self._calls.ask(name, self._handle, index) for index in range(most))
        return [handle for handle in found if handle is not None]

    def _identity(self, handle: Any) -> tuple[Any, str, int] | None:
        uuid = self._calls.ask("nvmlDeviceGetUUID", handle)
        instance = self._calls.ask("nvmlDeviceGetGpuInstanceId", handle)
        if uuid is None or instance is None:
            return None
        return handle, uuid.decode() if isinstance(uuid, bytes) else uuid, instance
