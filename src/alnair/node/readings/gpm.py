"""Counters of the hardware without DCGM: GPM, on Hopper and newer, of a GPU or GPU instance."""

import contextlib
from typing import Any, Final

from alnair.node.readings.calls import Calls

#: NVML_GPM_METRIC_*, percent.
ANY, SM, OCCUPANCY, TENSOR, DRAM = 1, 2, 3, 5, 10
_METRICS: Final = (ANY, SM, OCCUPANCY, TENSOR, DRAM)
_NAMES: Final = {
    SM: "sm_active",
    OCCUPANCY: "sm_occupancy",
    TENSOR: "tensor_active",
    DRAM: "dram_active",
}


class Gpm:
    """Two samples in turn, and what happened between them.

    Args:
        calls: Of the GPU.
        handle: Of the GPU.
        instance: Of a GPU instance of MIG the number; None: the GPU as a whole.
    """

    def __init__(self, calls: Calls, handle: Any, instance: int | None = None) -> None:
        self._calls = calls
        self._handle = handle
        self._instance = instance
        support = calls.ask("nvmlGpmQueryDeviceSupport", handle)
        self._is_supported = bool(support is not None and support.isSupportedDevice)
        self._samples: list[Any] = []
        self._has_last = False
        self._asked: Any = None

    def read(self) -> dict[int, float]:
        """Return metric → percent since the last time; nothing at first, and where there is no GPM.

        Raises:
            NvmlError: The GPU is not there.
        """
        if not self._is_supported or not self._allocate():
            return {}
        self._samples.reverse()  # the newer one is the second
        if self._instance is None:
            arguments: tuple[Any, ...] = ("nvmlGpmSampleGet", self._handle)
        else:
            arguments = ("nvmlGpmMigSampleGet", self._handle, self._instance)
        had_last = self._has_last
        self._has_last = self._calls.ask(*arguments, self._samples[1]) is not None
        if not had_last or not self._has_last:
            return {}
        self._asked.numMetrics = len(_METRICS)
        self._asked.sample1, self._asked.sample2 = self._samples
        if self._calls.ask("nvmlGpmMetricsGet", self._asked) is None:
            return {}
        return {
            metric: min(max(value.value, 0.0), 100.0)
            for metric, value in zip(_METRICS, self._asked.metrics, strict=False)
            if value.nvmlReturn == 0
        }

    def close(self) -> None:
        """Give the samples back."""
        for sample in self._samples:
            with contextlib.suppress(self._calls.api.NVMLError):
                self._calls.api.nvmlGpmSampleFree(sample)
        self._samples, self._has_last = [], False

    def _allocate(self) -> bool:
        while len(self._samples) < 2:
            sample = self._calls.ask("nvmlGpmSampleAlloc")
            if sample is None:
                self._is_supported = False
                return False
            self._samples.append(sample)
        if self._asked is None:
            api = self._calls.api
            self._asked = api.c_nvmlGpmMetricsGet_t()
            self._asked.version = api.NVML_GPM_METRICS_GET_VERSION
            for at, metric in enumerate(_METRICS):
                self._asked.metrics[at].metricId = metric
        return True


def named(metrics: dict[int, float]) -> dict[str, float]:
    """Return metrics by the names that samples have for them, 0 to 1."""
    return {name: metrics[number] / 100 for number, name in _NAMES.items() if number in metrics}
