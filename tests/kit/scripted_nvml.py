"""As `pynvml`, with the answers that a test says: what real drivers were seen to do."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED, NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST, UNKNOWN = 3, 6, 13, 15, 999


class ScriptedError(Exception):
    """As `pynvml.NVMLError`."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


class Metric(ctypes.Structure):
    """As `c_nvmlGpmMetric_t`, as far as it is used."""

    _fields_ = [
        ("metricId", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_uint),
        ("value", ctypes.c_double),
    ]


class MetricsGet:
    """As `c_nvmlGpmMetricsGet_t`."""

    def __init__(self) -> None:
        self.version = self.numMetrics = 0
        self.sample1 = self.sample2 = None
        self.metrics = (Metric * 16)()


class ScriptedNvml:
    """The functions that a test gives answers for; a driver lacks all others.

    Args:
        answers: By function without its "nvml": a value, a function of the arguments, or an
            `ScriptedError` to be raised.

    Attributes:
        calls: (function, arguments without the handle) in order.
    """

    NVMLError = ScriptedError
    nvmlMemory_v2 = 2  # noqa: N815 (NVML's names)
    NVML_GPM_METRICS_GET_VERSION = 1
    c_nvmlGpmMetricsGet_t = MetricsGet  # noqa: N815

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        short = name.removeprefix("nvml")
        if not name.startswith("nvml") or short not in self.answers:
            raise AttributeError(name)

        def answer(*arguments: Any) -> Any:
            self.calls.append((short, arguments[1:]))
            found = self.answers[short]
            if callable(found):
                found = found(*arguments)
            if isinstance(found, ScriptedError):
                raise found
            return found

        return answer

    def asked(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of all calls of a function."""
        return [arguments for called, arguments in self.calls if called == name]


def use_of(pid: int, stamp: int, sm: int, memory: int = 0, decoder: int = 0) -> Any:
    """A row of a process's use."""
    return SimpleNamespace(
        pid=pid, timeStamp=stamp, smUtil=sm, memUtil=memory, encUtil=0, decUtil=decoder
    )


def process(pid: int, used: int | None = 1 << 20) -> Any:
    """A row of the lists of processes."""
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def memory(used: int, total: int = 1 << 34, reserved: int = 0) -> Any:
    return SimpleNamespace(used=used, total=total, reserved=reserved)


def sampled(*percents: int, stamp: int) -> tuple[int, list[Any]]:
    """Samples of a ring, the last one with this stamp."""
    first = stamp - len(percents) + 1
    return 1, [
        SimpleNamespace(timeStamp=first + at, sampleValue=SimpleNamespace(uiVal=percent))
        for at, percent in enumerate(percents)
    ]


def field(value: float, result: int = 0, kind: int = 3) -> Any:
    """A value of `nvmlDeviceGetFieldValues`; by default unsigned long long."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    return SimpleNamespace(
        nvmlReturn=result, valueType=kind, value=SimpleNamespace(**{members[kind]: value})
    )
