"""When a pod's figures have changed so much that they are written again.

Each write is one of etcd's, and news for everybody who watches pods. A thousand nodes with twenty
pods each that were written every second would be 20,000 a second. How many go at most is the affair
of `write_budget`.
"""

import statistics
from collections import deque
from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.model import usage

#: Seconds between two writes, until a large change of a pod's use counts, and until a small one.
LEAST: Final = 60.0
LARGE_AFTER: Final = 300.0
PATIENCE: Final = 600.0
#: Points of a percentage that are a large change, and a small one.
LARGE: Final = 25.0
SMALL: Final = 5.0
#: Part by which amounts have to change; a maximum that grows by less is no news.
PART: Final = 0.05
#: What is too little to be news, whatever part it is.
_FLOORS: Final = {
    usage.GPU_UTIL: 1.0,
    usage.GPU_MEMORY_COPY_UTIL: 1.0,
    usage.GPU_MEMORY_MIB: 16.0,
    usage.POWER_W: 10.0,
    usage.CPU_CORES: 0.1,
    usage.MEMORY_MIB: 16.0,
}
_FLOOR: Final = 1.0
_PERCENT: Final = frozenset({usage.GPU_UTIL, usage.GPU_MEMORY_COPY_UTIL})
#: Looks by which noise is told, and how many times it a change must be.
_LOOKS: Final = 7
_NOISES: Final = 2.0
#: What is written; pressures and throttling are for metrics.
WRITTEN: Final = (
    usage.GPU_UTIL,
    usage.GPU_MEMORY_COPY_UTIL,
    usage.GPU_MEMORY_MIB,
    usage.POWER_W,
    usage.CPU_CORES,
    usage.MEMORY_MIB,
    usage.IO_READ_MIB_S,
    usage.IO_WRITE_MIB_S,
    usage.NET_RX_MIB_S,
    usage.NET_TX_MIB_S,
    usage.PCIE_RX_MIB_S,
    usage.PCIE_TX_MIB_S,
    usage.NVLINK_RX_MIB_S,
    usage.NVLINK_TX_MIB_S,
)


class PodFigures(msgspec.Struct, frozen=True):
    """What is said of a pod.

    Attributes:
        gpu: Percent of its GPUs' time.
        current: Metric → what it is now.
        maximum: Metric → the most that it ever was.
    """

    gpu: float
    current: Mapping[str, float] = {}
    maximum: Mapping[str, float] = {}


def figures(gpu: float, values: Mapping[str, tuple[float | None, float]]) -> PodFigures:
    """Return what is said, rounded as it is written.

    Args:
        gpu: Percent of its GPUs' time.
        values: Metric → (newest or None, largest).
    """
    written = {metric: values[metric] for metric in WRITTEN if metric in values}
    current = {metric: now for metric, (now, _) in written.items() if now is not None}
    return PodFigures(
        round(gpu, 1),
        {metric: _rounded(value) for metric, value in current.items()},
        {metric: _rounded(most) for metric, (_, most) in written.items()},
    )


class Noise:
    """How far a value jumps from look to look without going anywhere.

    It is the median of the last differences: of one step it does not grow.
    """

    def __init__(self) -> None:
        self._value: float | None = None
        self._differences = deque[float](maxlen=_LOOKS)

    def take(self, value: float) -> float:
        """Take in a value; return how much of a change is none."""
        if self._value is not None:
            self._differences.append(abs(value - self._value))
        self._value = value
        if len(self._differences) < _LOOKS:
            return 0.0
        return _NOISES * statistics.median(self._differences)


def is_news(old: PodFigures, new: PodFigures, age: float, noise: float = 0.0) -> bool:
    """Say whether the new figures are to be written.

    Args:
        old: As written.
        new: As they are.
        age: Seconds since the old ones were written.
        noise: Points of the GPUs' use that are no change.
    """
    if age < LEAST:
        return False
    grown = any(
        _has_grown(metric, old.maximum.get(metric), value) for metric, value in new.maximum.items()
    )
    change = abs(new.gpu - old.gpu)
    return (
        grown
        or (age >= LARGE_AFTER and change >= max(LARGE, noise))
        or (age >= PATIENCE and change >= max(SMALL, noise))
    )


def _has_grown(metric: str, before: float | None, now: float) -> bool:
    grown = now - (before or 0.0)
    part = 0.0 if metric in _PERCENT else PART * (before or 0.0)
    return grown >= max(_FLOORS.get(metric, _FLOOR), part)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
