"""What the NVIDIA driver knows of the GPUs and of the processes on them.

One small class over `nvidia-ml-py`, which is the extra `agent`. Its calls can take long where a
driver hangs, so they are made in a thread.
"""

import contextlib
import logging
from typing import Any, Self

import msgspec

from alnair.node.nvml_events import XidEvents

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


class Usage(msgspec.Struct, frozen=True):
    """What a GPU does as a whole.

    Attributes:
        util: Percent of the last sample (a second at most) in which kernels ran; None where
            that is not measured, as in MIG mode.
        memory_bytes: In use, with the driver's own part.
        mig: Bytes in use of the GPU's MIG devices, by their UUIDs; of those of one GPU instance
            together.
    """

    util: float | None
    memory_bytes: int
    mig: dict[str, int] = {}


class Nvml:
    """NVML, opened; close it again.

    Attributes:
        api: What has the functions of `pynvml`.
        handles: Of the GPUs, by UUID; they hold as long as it is open.
        gpus: Those of the node, by index.
        driver: The driver's version.
    """

    def __init__(self, api: Any) -> None:
        self.api = api
        self.handles: dict[str, Any] = {}
        self._events: XidEvents | None = None
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
                made._events = XidEvents(api, made.handles)
            except BaseException:
                made.close()  # opened again later, it must not count twice
                raise
        except api.NVMLError as error:
            raise NvmlError(f"the NVIDIA driver does not answer: {error}") from error
        return made

    def close(self) -> None:
        """Close it."""
        if self._events is not None:
            self._events.close()
        with contextlib.suppress(self.api.NVMLError):
            self.api.nvmlShutdown()

    def check(self) -> None:
        """Make sure that it is still the driver that was opened, with as many GPUs.

        Raises:
            NvmlError: It is not, or it does not answer: close it, and open it again.
        """
        api = self.api
        try:
            found = text(api.nvmlSystemGetDriverVersion()), api.nvmlDeviceGetCount()
        except api.NVMLError as error:
            raise NvmlError(f"the NVIDIA driver does not answer: {error}") from error
        if found != (self.driver, self._count):
            raise NvmlError(f"the NVIDIA driver is another: {found[0]}, with {found[1]} GPUs")

    def _list(self) -> None:
        api, gpus = self.api, []
        self.driver = text(api.nvmlSystemGetDriverVersion())
        self._count = api.nvmlDeviceGetCount()
        for index in range(self._count):
            try:
                handle = api.nvmlDeviceGetHandleByIndex(index)
                uuid = text(api.nvmlDeviceGetUUID(handle))
                memory = int(api.nvmlDeviceGetMemoryInfo(handle).total)
                gpus.append(NvmlGpu(index, uuid, text(api.nvmlDeviceGetName(handle)), memory))
            except api.NVMLError as error:
                if self._count == 1:
                    raise
                _log.warning("GPU %d does not answer: %s", index, error)  # the others may
                continue
            self.handles[uuid] = handle
        self.gpus = tuple(gpus)

    def load(self, uuid: str) -> Load:
        """Ask what a GPU does.

        Raises:
            NvmlError: The GPU is not there, or is lost.
        """
        handle = self._handle(uuid)
        api, memory = self.api, dict[int, int | None]()
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

    def usage(self, uuid: str) -> Usage:
        """Ask how busy a GPU is, and how full.

        Raises:
            NvmlError: The GPU is not there, or is lost.
        """
        api, handle = self.api, self._handle(uuid)
        try:
            memory = int(api.nvmlDeviceGetMemoryInfo(handle).used)
            try:
                util = float(api.nvmlDeviceGetUtilizationRates(handle).gpu)
            except api.NVMLError as error:
                if error.value != api.NVML_ERROR_NOT_SUPPORTED:
                    raise
                util = None
        except api.NVMLError as error:
            raise NvmlError(f"{uuid}: {error}") from error
        return Usage(util, memory, self._mig_memory(handle) if util is None else {})

    def mig_handles(self, gpu: Any) -> list[Any]:
        """Return the handles of a GPU's MIG devices; each may cease to be one at any time.

        Raises:
            NVMLError: The GPU does not answer.
        """
        api, found = self.api, []
        try:
            most = api.nvmlDeviceGetMaxMigDeviceCount(gpu)
        except AttributeError:
            return []
        for index in range(most):
            try:
                found.append(api.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index))
            except api.NVMLError as error:
                if error.value not in (api.NVML_ERROR_NOT_FOUND, api.NVML_ERROR_INVALID_ARGUMENT):
                    raise
        return found

    def _mig_memory(self, gpu: Any) -> dict[str, int]:
        api = self.api
        try:
            return {
                text(api.nvmlDeviceGetUUID(one)): int(api.nvmlDeviceGetMemoryInfo(one).used)
                for one in self.mig_handles(gpu)
            }
        except api.NVMLError:
            return {}  # one of them was just destroyed, or there is no MIG

    def xids(self) -> list[tuple[str, int]]:
        """Return (GPU, XID) of the errors that came since the last time; GPU "" if not known."""
        return self._events.fetch() if self._events is not None else []

    def _handle(self, uuid: str) -> Any:
        handle = self.handles.get(uuid)
        if handle is None:
            raise NvmlError(f"there is no GPU {uuid} on this node")
        return handle

    def _shares(self, uuid: str, handle: Any) -> dict[int, float]:
        api = self.api
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


def text(value: str | bytes) -> str:
    """Return what NVML wrote: older packages give bytes."""
    return value.decode() if isinstance(value, bytes) else value
