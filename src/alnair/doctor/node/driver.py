"""What do the NVIDIA driver and NVML know of this node's GPUs?"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from alnair.doctor.finding import Finding, error, ok, warning
from alnair.doctor.node.look import NodeLook
from alnair.model.plurals import counted
from alnair.node.nvml import Nvml, NvmlError, NvmlGpu

#: The first driver whose memory of a process is told by process in every container.
_QUERY: Final = "nvidia-smi --query-gpu=index,uuid"


def driver(look: NodeLook) -> list[Finding]:
    """The driver answers; each GPU tells of its processes, its errors and its MIG mode."""
    try:
        nvml = look.opener()
    except NvmlError as problem:
        return [error(str(problem), fix="nvidia-smi")]
    with contextlib.closing(nvml):
        if not nvml.gpus:
            return [error(f"driver {nvml.driver} knows no GPU", fix="nvidia-smi --list-gpus")]
        found = [ok(f"driver {nvml.driver} answers, with {counted(len(nvml.gpus), 'GPU')}")]
        for gpu in nvml.gpus:
            found += _of_gpu(nvml, gpu)
        return found


def _of_gpu(nvml: Nvml, gpu: NvmlGpu) -> Iterator[Finding]:
    api, handle, where = nvml.api, nvml.handles[gpu.uuid], f"GPU {gpu.index} ({gpu.uuid})"
    lacks = []
    mig = _asked(api, "nvmlDeviceGetMigMode", handle)
    if mig is not None and mig[0]:
        text = "it is in MIG mode: it takes no slices; its MIG devices are given whole"
        yield warning(text, where, fix=f"nvidia-smi --id={gpu.index} --multi-instance-gpu=0")
    if _asked(api, "nvmlDeviceGetComputeRunningProcesses", handle) is None:
        lacks.append("which processes hold its memory (violations cannot be seen)")
    if not _knows(api, "nvmlDeviceGetProcessUtilization", handle, 0):
        lacks.append("what part of its time each process has (idleness is told of the whole GPU)")
    kinds = _asked(api, "nvmlDeviceGetSupportedEventTypes", handle)
    if kinds is None or not kinds & api.nvmlEventTypeXidCriticalError:
        lacks.append("its XID errors (a broken GPU is found by its silence only)")
    if lacks:
        text = f"the driver does not say {'; nor '.join(lacks)}"
        yield warning(text, where, fix=f"{_QUERY},driver_version,mig.mode.current --format=csv")
    else:
        accounting = _asked(api, "nvmlDeviceGetAccountingMode", handle)
        said = {None: "not known", 0: "off"}.get(accounting, "on")
        yield ok(f"processes, their time and errors are told; accounting is {said}", where)


def _asked(api: Any, name: str, *arguments: Any) -> Any:
    """What NVML says; None if it does not."""
    try:
        return getattr(api, name)(*arguments)
    except (api.NVMLError, AttributeError):
        return None


def _knows(api: Any, name: str, *arguments: Any) -> bool:
    """Whether NVML can say it, though it may have nothing to say now."""
    try:
        getattr(api, name)(*arguments)
    except AttributeError:
        return False
    except api.NVMLError as problem:
        lacking = {api.NVML_ERROR_NOT_SUPPORTED, api.NVML_ERROR_FUNCTION_NOT_FOUND}
        return problem.value not in lacking
    return True
