"""What two samples of a counter say of the time between them."""

from alnair.model import usage
from alnair.profiler.samples import CgroupSample, GpuSample, NetworkSample

#: Metric → value; what was not measured is absent.
Figures = dict[str, float]
_MIB = 1 << 20
_PRESSURES = {
    "cpu": usage.CPU_PRESSURE,
    "memory": usage.MEMORY_PRESSURE,
    "io": usage.IO_PRESSURE,
}


def cgroup_rates(before: CgroupSample | None, after: CgroupSample) -> Figures:
    """Return a container's figures; without a sample before, those of the moment alone.

    A counter that has become smaller was begun anew and says nothing of this time.
    """
    found: Figures = {}
    if after.memory_bytes is not None:
        found[usage.MEMORY_MIB] = after.memory_bytes / _MIB
    if before is None or after.at <= before.at:
        return found
    seconds = after.at - before.at
    _put(found, usage.CPU_CORES, before.cpu_ns, after.cpu_ns, 1e9 * seconds)
    _put(found, usage.IO_READ_MIB_S, before.io_read, after.io_read, _MIB * seconds)
    _put(found, usage.IO_WRITE_MIB_S, before.io_write, after.io_write, _MIB * seconds)
    if periods := _growth(before.periods, after.periods):
        throttled = _growth(before.throttled_periods, after.throttled_periods)
        if throttled is not None:
            found[usage.CPU_THROTTLED] = min(1.0, throttled / periods)
    for name, total in after.pressure.items():
        waited = _growth(before.pressure.get(name), total)
        if waited is not None:
            found[_PRESSURES[name]] = min(1.0, waited / 1e6 / seconds)
    return found


def network_rates(before: NetworkSample | None, after: NetworkSample) -> Figures:
    """Return a pod's figures."""
    found: Figures = {}
    if before is not None and after.at > before.at:
        seconds = after.at - before.at
        _put(found, usage.NET_RX_MIB_S, before.rx, after.rx, _MIB * seconds)
        _put(found, usage.NET_TX_MIB_S, before.tx, after.tx, _MIB * seconds)
    return found


def link_rates(before: GpuSample | None, after: GpuSample) -> Figures:
    """Return what went over a GPU's links."""
    found: Figures = {}
    if before is not None and after.at > before.at:
        scale = _MIB * (after.at - before.at)
        _put(found, usage.PCIE_RX_MIB_S, before.pcie_rx, after.pcie_rx, scale)
        _put(found, usage.PCIE_TX_MIB_S, before.pcie_tx, after.pcie_tx, scale)
        _put(found, usage.NVLINK_RX_MIB_S, before.nvlink_rx, after.nvlink_rx, scale)
        _put(found, usage.NVLINK_TX_MIB_S, before.nvlink_tx, after.nvlink_tx, scale)
    return found


def energy(before: GpuSample | None, after: GpuSample) -> float | None:
    """Return the joules that a GPU took since the sample before; None if not known.

    Where there is no counter, it is the power now over the time.
    """
    if before is None or after.at <= before.at:
        return None
    if before.energy_j is not None and after.energy_j is not None:
        grown = after.energy_j - before.energy_j
        return grown if grown >= 0 else None
    return None if after.power_w is None else after.power_w * (after.at - before.at)


def _growth(before: int | None, after: int | None) -> int | None:
    if before is None or after is None or after < before:
        return None
    return after - before


def _put(found: Figures, metric: str, before: int | None, after: int | None, scale: float) -> None:
    if before is not None and after is not None and after >= before:  # on a warm path
        found[metric] = (after - before) / scale
