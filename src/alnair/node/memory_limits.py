"""Tier A: the driver itself limits the device memory of a cgroup, told by NVML.

Since driver release 615 (`nvmlDeviceSetMemoryLimits_v1` of nvml.h 13.4). A limit covers whatever
any process of the cgroup allocates on that GPU, but managed memory. It has to be set when the
cgroup is there and before its first CUDA call, and goes with the cgroup. Behind it is the kernel's
`dmem` controller, or one of the driver, to which nobody else may write.

Refusals are values, in words: what a node cannot do is a fact about it, and `alnair.sharing.tiers`
says what follows. NVML must have been initialised; devices are its handles.
"""

from pathlib import Path

import msgspec
import pynvml

from alnair.sharing.tiers import MEMORY_LIMITS_DRIVER, NodeFacts, release

CGROUPS = Path("/sys/fs/cgroup")

#: NVML's error: what it means here.
_MEANINGS = {
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "the driver has no memory limits",
    pynvml.NVML_ERROR_NOT_SUPPORTED: "this GPU and kernel have no memory limits",
    pynvml.NVML_ERROR_NO_PERMISSION: "only root may set memory limits: run the agent as root",
    pynvml.NVML_ERROR_INVALID_ARGUMENT: "the limit exceeds the GPU, or the soft the hard one",
    pynvml.NVML_ERROR_OPERATING_SYSTEM: "the driver cannot open the cgroup: is it still there?",
    pynvml.NVML_ERROR_GPU_IS_LOST: "the GPU has fallen off the bus",
}


class MemoryLimit(msgspec.Struct, frozen=True):
    """A limit that is set, in bytes.

    Attributes:
        guaranteed: NVML's softLimit; between it and `limit` memory is borrowed.
        limit: NVML's hardLimit, the most that may be held; None: no more than the GPU has.
        used: What the cgroup's processes hold.
    """

    guaranteed: int
    limit: int | None
    used: int


class Refused(msgspec.Struct, frozen=True):
    """What the driver did not do, and why."""

    why: str


def lacks(device: object, cgroups: Path = CGROUPS) -> str:
    """Why a GPU has no memory limits; "" if it has.

    Both are asked: an old driver lacks the function, and a new one may lack the kernel's side.

    Raises:
        pynvml.NVMLError: The driver answers not even its version.
    """
    driver = pynvml.nvmlSystemGetDriverVersion()
    if (release(driver) or 0) < MEMORY_LIMITS_DRIVER:
        return f"driver {driver} is older than release {MEMORY_LIMITS_DRIVER}"
    found = read(device, cgroups)
    return found.why if isinstance(found, Refused) else ""


def set_limit(device: object, cgroup: Path, *, limit: int, guaranteed: int | None = None) -> str:
    """Limits a container's cgroup on one GPU; "" or why the driver refused.

    Args:
        device: Handle of the whole GPU.
        cgroup: Full path of the cgroup in the cgroup file system.
        limit: Bytes, NVML's hardLimit.
        guaranteed: Bytes, NVML's softLimit; None: all of `limit`, nothing is borrowed.
    """
    return _set(device, cgroup, guaranteed=limit if guaranteed is None else guaranteed, limit=limit)


def clear(device: object, cgroup: Path) -> str:
    """Takes a limit away, before the cgroup goes; "" or why the driver refused."""
    return _set(device, cgroup, guaranteed=0, limit=pynvml.NVML_DEVICE_MEMORY_LIMIT_MAX)


def read(device: object, cgroup: Path) -> MemoryLimit | Refused | None:
    """The limit of a cgroup on one GPU; None: none is set. Needs no privilege."""
    limits = pynvml.c_nvmlGetMemoryLimits_v1_t()
    limits.nameSpace = str(cgroup).encode()
    try:
        pynvml.nvmlDeviceGetMemoryLimits_v1(device, limits)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_FOUND:
            return None
        return Refused(_meaning(error))
    most = pynvml.NVML_DEVICE_MEMORY_LIMIT_MAX
    limit = None if limits.hardLimit == most else int(limits.hardLimit)
    if limit is None and not limits.softLimit:
        return None
    return MemoryLimit(guaranteed=int(limits.softLimit), limit=limit, used=int(limits.currentUsed))


def shows_limit(cgroup: Path) -> bool:
    """Whether processes of the cgroup see its limit as the GPU's size: not if it has children.

    Raises:
        OSError: The cgroup is gone.
    """
    return not any(entry.is_dir() for entry in cgroup.iterdir())


def observe(
    *, interposer: str, mps: str, accounting: str = "", cgroups: Path | None = CGROUPS
) -> NodeFacts:
    """The facts about this node that its tiers follow from.

    Args:
        interposer: "" or why there is none, see `NodeFacts`.
        mps: "" or why there is none, as `MpsHealth.missing` says.
        accounting: "" or why NVML does not tell the memory of processes.
        cgroups: Where cgroups are mounted; None: not as version 2, or not only so.

    Raises:
        pynvml.NVMLError: NVML does not work at all.
    """
    devices = [
        pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
    ]
    plain = [device for device in devices if not _has_mig(device)]
    missing = [found for device in plain if (found := lacks(device, cgroups or CGROUPS))]
    none = "every GPU is in MIG mode, in which there are none" if devices else "there is no GPU"
    return NodeFacts(
        driver=pynvml.nvmlSystemGetDriverVersion(),
        memory_limits=missing[0] if missing else "" if plain else none,
        cgroup_v2=cgroups is not None,
        mig=len(plain) < len(devices),
        interposer=interposer,
        mps=mps,
        accounting=accounting,
    )


def _has_mig(device: object) -> bool:
    try:
        current, _pending = pynvml.nvmlDeviceGetMigMode(device)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_SUPPORTED:
            return False
        raise
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)


def _set(device: object, cgroup: Path, *, guaranteed: int, limit: int) -> str:
    limits = pynvml.c_nvmlSetMemoryLimits_v1_t()
    limits.nameSpace = str(cgroup).encode()
    limits.softLimit, limits.hardLimit = guaranteed, limit
    try:
        pynvml.nvmlDeviceSetMemoryLimits_v1(device, limits)
    except pynvml.NVMLError as error:
        return _meaning(error)
    return ""


def _meaning(error: pynvml.NVMLError) -> str:
    return _MEANINGS.get(error.value, f"NVML: {error}")
