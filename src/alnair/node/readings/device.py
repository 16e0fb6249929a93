"""A GPU as a whole: how busy, how full, how warm, and its counters."""

import time
from typing import Any, Final, NamedTuple

import msgspec

from alnair.node.readings.calls import NOT_SUPPORTED, SUCCESS, Calls
from alnair.profiler.process_samples import AHEAD_US, asked_since

#: Microseconds that count as now at the first look.
PERIOD_US: Final = 1_000_000
#: NVML_GPU_UTILIZATION_SAMPLES, NVML_MEMORY_UTILIZATION_SAMPLES.
_GPU, _MEMORY = 1, 2
#: Fields (nvml.h, NVML_FI_DEV_*) with their scopes; of links, all of them together.
_ALL: Final = 0xFFFFFFFF
_ENERGY, _POWER = (83, 0), (186, 0)
_PCIE_TX, _PCIE_RX = (197, 0), (198, 0)
#: KiB; on GPUs with NVLink 5 the next two, in bytes.
_LINK_TX, _LINK_RX = (138, _ALL), (139, _ALL)
_LINK5_TX, _LINK5_RX = (202, _ALL), (204, _ALL)
_FIELDS: Final = (
    _ENERGY,
    _POWER,
    _PCIE_TX,
    _PCIE_RX,
    _LINK_TX,
    _LINK_RX,
    _LINK5_TX,
    _LINK5_RX,
)
#: Members of nvmlValue_t by nvmlValueType_t.
_MEMBERS: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
#: nvmlClocksEventReason*; an idle GPU's clock is low for no harm.
_THROTTLES: Final = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}


class Busy(NamedTuple):
    """How busy it was.

    Attributes:
        util: Mean percent of time in which kernels ran; None if not measured.
        memory: Percent of time in which its memory was read or written.
        samples: The driver's own since the last look: seconds since the epoch, and percent.
    """

    util: float | None = None
    memory: float | None = None
    samples: tuple[tuple[float, float], ...] = ()

    @property
    def is_mean(self) -> bool:
        """Whether it is over all the time since the last look; else of its end alone."""
        return bool(self.samples)


class Memory(msgspec.Struct, frozen=True):
    """Bytes: in use, that there are, and those that the driver keeps."""

    used: int
    total: int
    reserved: int = 0


class BusyReader:
    """Reads the driver's own samples, several a second: each of them once."""

    def __init__(self, calls: Calls, handle: Any) -> None:
        self._calls = calls
        self._handle = handle
        self._since = {_GPU: 0, _MEMORY: 0}

    def read(self) -> Busy:
        """Ask; where there are no samples, or none is new, for the last one."""
        now_us = time.time_ns() // 1000
        busy, memory = self._new(_GPU, now_us), self._new(_MEMORY, now_us)
        if busy:
            return Busy(_mean(busy), _mean(memory) if memory else None, tuple(busy))
        rates = self._calls.ask("nvmlDeviceGetUtilizationRates", self._handle)
        if rates is None:
            return Busy()
        return Busy(float(rates.gpu), float(rates.memory))

    def _new(self, kind: int, now_us: int) -> list[tuple[float, float]]:
        since = asked_since(self._since[kind], now_us, PERIOD_US)
        found = self._calls.ask("nvmlDeviceGetSamples", self._handle, kind, since)
        percents: list[tuple[float, float]] = []
        newest = self._since[kind]
        for sample in found[1] if found is not None else ():
            stamp, percent = sample.timeStamp, sample.sampleValue.uiVal
            if since < stamp <= now_us + AHEAD_US and percent <= 100:
                percents.append((stamp / 1e6, float(percent)))
                newest = max(newest, stamp)
        self._since[kind] = newest
        return percents


def _mean(samples: list[tuple[float, float]]) -> float:
    return sum(percent for _, percent in samples) / len(samples)


def memory_of(calls: Calls, handle: Any) -> Memory | None:
    """Read the memory of a GPU or MIG device; None where it has none of its own.

    Raises:
        NvmlError: The GPU is not there.
    """
    version = getattr(calls.api, "nvmlMemory_v2", None)
    if version is not None:
        found = calls.ask("nvmlDeviceGetMemoryInfo", handle, version)
        if found is not None:
            return Memory(int(found.used), int(found.total), int(found.reserved))
    # Older drivers count what they keep for themselves as used.
    found = calls.ask("nvmlDeviceGetMemoryInfo", handle, needed=True)
    return None if found is None else Memory(int(found.used), int(found.total))


class Counters(NamedTuple):
    """Joules and bytes since some beginning, and watts now; None: it has no such counter."""

    energy_j: float | None
    power_w: float | None
    pcie_rx: int | None
    pcie_tx: int | None
    nvlink_rx: int | None
    nvlink_tx: int | None


class CounterReader:
    """Reads the counters of a GPU, in one call where the driver can."""

    def __init__(self, calls: Calls, handle: Any) -> None:
        self._calls = calls
        self._handle = handle
        #: Those that this GPU has, as far as is known.
        self._fields: tuple[tuple[int, int], ...] = _FIELDS

    def read(self) -> Counters:
        """Ask.

        Raises:
            NvmlError: The GPU is not there.
        """
        found = self._values()
        energy, power = found.get(_ENERGY), found.get(_POWER)
        if energy is None:
            energy = self._calls.ask("nvmlDeviceGetTotalEnergyConsumption", self._handle)
        if power is None:
            power = self._calls.ask("nvmlDeviceGetPowerUsage", self._handle)
        return Counters(
            energy_j=None if energy is None else energy / 1000,
            power_w=None if power is None else power / 1000,
            pcie_rx=_bytes(None, found.get(_PCIE_RX)),
            pcie_tx=_bytes(None, found.get(_PCIE_TX)),
            nvlink_rx=_bytes(found.get(_LINK_RX), found.get(_LINK5_RX)),
            nvlink_tx=_bytes(found.get(_LINK_TX), found.get(_LINK5_TX)),
        )

    def _values(self) -> dict[tuple[int, int], float]:
        found: dict[tuple[int, int], float] = {}
        asked = self._fields
        if not asked:
            return found
        answers = self._calls.ask("nvmlDeviceGetFieldValues", self._handle, asked)
        for field, answer in zip(asked, answers if answers is not None else (), strict=False):
            result = answer.nvmlReturn
            if result == SUCCESS:
                found[field] = getattr(answer.value, _MEMBERS[answer.valueType])
            elif result == NOT_SUPPORTED:
                self._fields = tuple(one for one in self._fields if one != field)
        return found


def _bytes(kib: float | None, plain: float | None) -> int | None:
    if kib is not None:
        return int(kib) << 10
    return None if plain is None else int(plain)


def throttle_of(calls: Calls, handle: Any) -> tuple[str, ...]:
    """Return why the clocks of a GPU are lowered; nothing also where that is not told."""
    bits = calls.first(
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        arguments=(handle,),
    )
    return tuple(name for bit, name in _THROTTLES.items() if bits and bits & bit)
