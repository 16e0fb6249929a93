"""All of one GPU at once, and what must be remembered from one reading to the next."""

import time
from typing import Any

from alnair.node.readings import gpm
from alnair.node.readings.calls import Calls
from alnair.node.readings.device import BusyReader, CounterReader, memory_of, throttle_of
from alnair.node.readings.gpm import Gpm
from alnair.node.readings.mig import MigDevices
from alnair.node.readings.processes import ProcessLists, ProcessUse, samples_of
from alnair.node.readings.values import Load, Reading, Usage
from alnair.profiler.samples import GpuSample


class GpuReader:
    """Reads a GPU, for as long as NVML stays open; by one thread at a time.

    Args:
        api: The functions of `pynvml`.
        uuid: Of the GPU.
        handle: Of the GPU.
    """

    def __init__(self, api: Any, uuid: str, handle: Any) -> None:
        self._calls = Calls(api, uuid)
        self._handle = handle
        self._busy = BusyReader(self._calls, handle)
        self._counters = CounterReader(self._calls, handle)
        self._lists = ProcessLists(self._calls)
        self._use = ProcessUse(self._calls, handle)
        self._mig = MigDevices(self._calls, handle, self._lists)
        self._gpm: Gpm | None = None

    def read(self) -> Reading:
        """Ask for all.

        Raises:
            NvmlError: The GPU is not there.
        """
        calls, handle = self._calls, self._handle
        memory = memory_of(calls, handle)
        is_mig = bool((calls.ask("nvmlDeviceGetMigMode", handle) or (0,))[0])
        busy = self._busy.read()
        listed = self._lists.read(handle, memory.total if memory is not None else None)
        use = self._use.read(listed)
        migs, mig_used = self._mig.read() if is_mig else ({}, {})
        if self._gpm is None:
            self._gpm = Gpm(calls, handle)
        counters = self._counters.read()
        temperature = calls.ask("nvmlDeviceGetTemperature", handle, 0)
        if memory is not None:
            used = memory.used + memory.reserved
        else:  # it shares the machine's memory
            used = sum(b for b in listed.memory.values() if b is not None)
        sample = GpuSample(
            at=time.monotonic(),
            util=busy.util,
            busy=busy.samples,
            memory_copy=busy.memory,
            memory_bytes=memory.used if memory is not None else None,
            memory_total=memory.total if memory is not None else None,
            power_w=counters.power_w,
            temperature_c=None if temperature is None else float(temperature),
            energy_j=counters.energy_j,
            pcie_rx=counters.pcie_rx,
            pcie_tx=counters.pcie_tx,
            nvlink_rx=counters.nvlink_rx,
            nvlink_tx=counters.nvlink_tx,
            throttle=throttle_of(calls, handle),
            profiling=gpm.named({} if is_mig else self._gpm.read()),
            processes=samples_of(listed, use, busy),
            mig=migs,
        )
        shares = {pid: sm / 100 for pid, (sm, _) in use.use.items()} if use is not None else {}
        return Reading(
            sample,
            Load(listed.memory, shares, listed.mps),
            Usage(busy.util, used, mig_used, busy.is_mean),
            use.unmapped if use is not None else 0,
        )

    def note(self) -> None:
        """Ask what processes use, for the next reading.

        Raises:
            NvmlError: The GPU is not there.
        """
        self._use.note()

    def close(self) -> None:
        """Give back what was allocated; before NVML is closed."""
        self._mig.close()
        if self._gpm is not None:
            self._gpm.close()
