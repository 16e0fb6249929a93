"""What a node is seen to do at one moment: what `alnair.node` measures and this package reads.

Times are seconds of one monotonic clock. What was not measured is None or absent, never 0. Counters
only grow; one that is smaller than before has been begun anew (a driver reloaded, a group remade).
"""

import msgspec


class ProcessSample(msgspec.Struct, frozen=True):
    """A process on a GPU.

    Attributes:
        pid: Of the host.
        sm: Percent of the GPU's compute time since the last sample.
        memory_copy: Percent of time in which it read or wrote the GPU's memory.
        memory_bytes: Charged to it.
    """

    pid: int
    sm: float | None = None
    memory_copy: float | None = None
    memory_bytes: int | None = None


class GpuSample(msgspec.Struct, frozen=True):
    """A GPU, or a MIG device.

    Attributes:
        at: When.
        util: Percent of the time since the last sample in which kernels ran: the mean of the
            driver's own samples.
        busy: Those: seconds since the epoch at which each ended, and percent; several a second.
        memory_copy: Percent of time in which its memory was read or written.
        memory_bytes: In use, without what the driver keeps for itself.
        memory_total: Bytes that there are.
        power_w: Watts, now.
        temperature_c: Degrees Celsius.
        energy_j: Counter, joules.
        pcie_rx, pcie_tx, nvlink_rx, nvlink_tx: Counters, bytes.
        throttle: Reasons why its clock is lowered, such as `sw_power_cap`.
        profiling: Counters of the hardware where they can be had (GPM): `sm_active`,
            `sm_occupancy`, `tensor_active`, `dram_active`, each 0 to 1.
        processes: Those on it.
        mig: Its MIG devices, by UUID.
    """

    at: float
    util: float | None = None
    busy: tuple[tuple[float, float], ...] = ()
    memory_copy: float | None = None
    memory_bytes: int | None = None
    memory_total: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    energy_j: float | None = None
    pcie_rx: int | None = None
    pcie_tx: int | None = None
    nvlink_rx: int | None = None
    nvlink_tx: int | None = None
    throttle: tuple[str, ...] = ()
    profiling: dict[str, float] = {}
    processes: tuple[ProcessSample, ...] = ()
    mig: dict[str, "GpuSample"] = {}


class CgroupSample(msgspec.Struct, frozen=True):
    """A container's control group.

    Attributes:
        at: When.
        cpu_ns: Counter, nanoseconds of CPU time.
        periods, throttled_periods: Counters of CFS periods; absent without a CPU limit.
        throttled_ns: Counter, nanoseconds for which it was throttled.
        memory_bytes: Working set: in use without inactive files.
        memory_peak: The largest use so far, bytes, files included.
        oom_kills: Counter.
        io_read, io_write: Counters, bytes.
        pressure: `cpu`, `memory`, `io` → counter, microseconds for which some task waited.
    """

    at: float
    cpu_ns: int | None = None
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_ns: int | None = None
    memory_bytes: int | None = None
    memory_peak: int | None = None
    oom_kills: int | None = None
    io_read: int | None = None
    io_write: int | None = None
    pressure: dict[str, int] = {}


class NetworkSample(msgspec.Struct, frozen=True):
    """A pod's network; counters, bytes. Pods in the host's network have none."""

    at: float
    rx: int
    tx: int


class ContainerKey(msgspec.Struct, frozen=True):
    """Whose a process is, by the kernel's word: pod uid, and the runtime's id of the container."""

    pod: str
    container: str
