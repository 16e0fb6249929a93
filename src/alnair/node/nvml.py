"""What the NVIDIA driver knows of the GPUs and of the processes on them.

One small class over `nvidia-ml-py`, which is the extra `agent`. Its calls can take long where a
driver hangs, so they are made in a thread.
"""

import contextlib
import logging
from typing import Any, Self

import msgspec

_log = logging.getLogger(__name__)


class NvmlError(Exception):
    """There is no NVML, or it does not answer; says why and what to do."""


class NvmlGpu(msgspec.Struct, frozen=True):
    """A GPU of the node."""

    index: int
    uuid: str
    model: str
    memory_bytes: int


class Load(msgspec.Struct, frozen=True):
    """What the driver says of a GPU at one moment.

    Attributes:
        memory: Host pid → bytes charged to it; None if the driver does not say.
        shares: Host pid → part of the GPU's time since the last look; empty if not measured.
        mps: Whether an MPS server's clients are among them.
    """

    memory: dict[int, int | None]
    shares: dict[int, float]
    mps: bool = False


class Nvml:
    """NVML, opened; close it again.

    Attributes:
        gpus: Those of the node, by index.
        driver: The driver's version.
    """

    def __init__(self, api: Any) -> None:
        self._api = api
        self._handles: dict[str, Any] = {}
        self._seen: dict[str, int] = {}
        self._count = 0
        self.gpus: tuple[NvmlGpu, ...] = ()
        self.driver = ""

    @classmethod
    def open(cls) -> Self:
        """Open it and list the GPUs.

        Raises:
            NvmlError: There is no driver, or the package is missing.
        """
        try:
            import pynvml  # noqa: PLC0415 (an extra that other commands lack)
        except ImportError as error:
            raise NvmlError("nvidia-ml-py is missing: install alnair[agent]") from error
        return cls.of(pynvml)

    @classmethod
    def of(cls, api: Any) -> Self:
        """Open what has the functions of `pynvml`, and list the GPUs.

        Raises:
            NvmlError: There is no driver.
        """
        made = cls(api)
        try:
            api.nvmlInit()
            try:
                made._list()
            except BaseException:
                made.close()  # opened again later, it must not count twice
                raise
        except api.NVMLError as error:
            raise NvmlError(f"the NVIDIA driver does not answer: {error}") from error
        return made

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(self._api.NVMLError):
            self._api.nvmlShutdown()

    def check(self) -> None:
        """Make sure that it is still the driver that was opened, with as many GPUs.

        Raises:
            NvmlError: It is not, or it does not answer: close it, and open it again.
        """
        api = self._api
        try:
            found = _text(api.nvmlSystemGetDriverVersion()), api.nvmlDeviceGetCount()
        except api.NVMLError as error:
            raise NvmlError(f"the NVIDIA driver does not answer: {error}") from error
        if found != (self.driver, self._count):
            raise NvmlError(f"the NVIDIA driver is another: {found[0]}, with {found[1]} GPUs")

    def _list(self) -> None:
        api, gpus = self._api, []
        self.driver = _text(api.nvmlSystemGetDriverVersion())
        self._count = api.nvmlDeviceGetCount()
        for index in range(self._count):
            try:
                handle = api.nvmlDeviceGetHandleByIndex(index)
                uuid = _text(api.nvmlDeviceGetUUID(handle))
                memory = int(api.nvmlDeviceGetMemoryInfo(handle).total)
                gpus.append(NvmlGpu(index, uuid, _text(api.nvmlDeviceGetName(handle)), memory))
            except api.NVMLError as error:
                if self._count == 1:
                    raise
                _log.warning("GPU %d does not answer: %s", index, error)  # the others may
                continue
            self._handles[uuid] = handle
        self.gpus = tuple(gpus)

    def load(self, uuid: str) -> Load:
        """Ask what a GPU does.

        Raises:
            NvmlError: The GPU is not there, or is lost.
        """
        handle = self._handles.get(uuid)
        if handle is None:
            raise NvmlError(f"there is no GPU {uuid} on this node")
        api, memory = self._api, dict[int, int | None]()
        mps = False
        for name in (
            "nvmlDeviceGetComputeRunningProcesses",
            "nvmlDeviceGetGraphicsRunningProcesses",
            "nvmlDeviceGetMPSComputeRunningProcesses",
        ):
            try:
                found = getattr(api, name)(handle)
            except api.NVMLError as error:
                if error.value == api.NVML_ERROR_NOT_SUPPORTED or "Graphics" in name:
                    continue
                if "MPS" in name and error.value == api.NVML_ERROR_FUNCTION_NOT_FOUND:
                    continue
                raise NvmlError(f"{uuid}: {error}") from error
            mps = mps or ("MPS" in name and bool(found))
            for process in found:
                # A process that computes and draws is in both lists, with the same bytes.
                old, new = memory.get(process.pid), process.usedGpuMemory
                memory[process.pid] = max((b for b in (old, new) if b is not None), default=None)
        return Load(memory, self._shares(uuid, handle), mps)

    def _shares(self, uuid: str, handle: Any) -> dict[int, float]:
        api = self._api
        try:
            samples = api.nvmlDeviceGetProcessUtilization(handle, self._seen.get(uuid, 0))
        except api.NVMLError:
            # Not supported, or nothing ran since: not measured is not zero.
            return {}
        sums: dict[int, list[int]] = {}
        newest = self._seen.get(uuid, 0)
        for sample in samples:
            if sample.timeStamp > self._seen.get(uuid, 0):
                sums.setdefault(sample.pid, []).append(min(sample.smUtil, 100))
                newest = max(newest, sample.timeStamp)
        self._seen[uuid] = newest
        return {pid: sum(found) / len(found) / 100 for pid, found in sums.items()}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
