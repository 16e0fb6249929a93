"""What the NVIDIA driver knows of the GPUs and of the processes on them.

One small class over `nvidia-ml-py`, which is the extra `agent`. Its calls can take long where a
driver hangs, so they are made in a thread.
"""

import contextlib
import logging
from typing import Any, Self

import msgspec

from alnair.model.plurals import counted
from alnair.node.nvml_events import XidEvents
from alnair.node.readings.reader import GpuReader
from alnair.node.readings.values import Load, NvmlError, Reading, Usage

__all__ = ["Load", "Nvml", "NvmlError", "NvmlGpu", "Reading", "Usage", "text"]

_log = logging.getLogger(__name__)


class NvmlGpu(msgspec.Struct, frozen=True):
    """A GPU of the node."""

    index: int
    uuid: str
    model: str
    memory_bytes: int


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
        self._readers: dict[str, GpuReader] = {}
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
        for reader in self._readers.values():
            reader.close()
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
            raise NvmlError(
                f"the NVIDIA driver is another: {found[0]}, with {counted(found[1], 'GPU')}"
            )

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

    def read(self, uuid: str) -> Reading:
        """Ask all of a GPU; of one by one thread at a time.

        Raises:
            NvmlError: The GPU is not there, or is lost.
        """
        if uuid not in self._readers:
            if uuid not in self.handles:
                raise NvmlError(f"there is no GPU {uuid} on this node")
            self._readers[uuid] = GpuReader(self.api, uuid, self.handles[uuid])
        return self._readers[uuid].read()

    def note(self, uuid: str) -> None:
        """Ask what a GPU's processes use, for its next reading: so it says it the finer.

        Raises:
            NvmlError: The GPU is not there, or is lost.
        """
        if uuid in self._readers:
            self._readers[uuid].note()

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

    def xids(self) -> list[tuple[str, int]]:
        """Return (GPU, XID) of the errors that came since the last time; GPU "" if not known."""
        return self._events.fetch() if self._events is not None else []


def text(value: str | bytes) -> str:
    """Return what NVML wrote: older packages give bytes."""
    return value.decode() if isinstance(value, bytes) else value
