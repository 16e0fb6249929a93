"""What a node's GPUs are: where they sit, how they hang together, whether they are cut up.

NVML is asked, and of the place of a GPU first the kernel. What a driver or a GPU does not know is
absent, never an error: a GPU without NVLink, a machine without NUMA, a driver that is older.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import msgspec

from alnair.model import names
from alnair.node.nvml import Nvml, NvmlGpu, text

SYSFS: Final = Path("/sys")
_MIB: Final = 1 << 20
_SWITCH: Final = "switch"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]")
#: 64-bit words of a set of NUMA nodes: 1,024 nodes, the most that Linux is built for.
_NODE_WORDS: Final = 16
#: Nearest bridge that two GPUs share, as NVML says it → as `nvidia-smi topo` does.
_BRIDGES: Final = (
    ("NVML_TOPOLOGY_INTERNAL", "PIX"),
    ("NVML_TOPOLOGY_SINGLE", "PIX"),
    ("NVML_TOPOLOGY_MULTIPLE", "PXB"),
    ("NVML_TOPOLOGY_HOSTBRIDGE", "PHB"),
    ("NVML_TOPOLOGY_NODE", "NODE"),
    ("NVML_TOPOLOGY_SYSTEM", "SYS"),
)


class MigDevice(msgspec.Struct, frozen=True):
    """A compute instance of a GPU in MIG mode, with the GPU instance around it.

    Attributes:
        uuid: As NVML writes it, MIG-….
        profile: What it is cut to, such as `1g.10gb+me` or `1c.2g.20gb`.
        gi: Id of the GPU instance.
        ci: Id of the compute instance within it.
        memory_mib: Of the GPU instance.
    """

    uuid: str
    profile: str
    gi: int
    ci: int
    memory_mib: int

    @property
    def resource(self) -> str:
        """What it is called in Kubernetes, as NVIDIA's plugin does in its strategy "mixed"."""
        return names.MIG_PREFIX + _NOT_IN_NAMES.sub(".", self.profile)


class GpuFacts(msgspec.Struct, frozen=True):
    """One GPU of the node.

    Attributes:
        index: NVML's number of it.
        uuid: As NVML writes it.
        model: NVML's name of it.
        memory_mib: All its memory, as NVML says.
        minor: Its device file is `/dev/nvidia<minor>`.
        pci: Its PCI bus id as in sysfs, such as `0000:10:00.0`; "" if not known.
        numa: The NUMA node that it is attached to; None if there is none or it is not known.
        mig: Whether it is in MIG mode: cut up by the driver, and never sliced by us.
        mig_capable: Whether it could be.
        mig_devices: What it is cut up into.
        links: Index of another GPU → kind of link, in the words of `nvidia-smi topo`.
    """

    index: int
    uuid: str
    model: str
    memory_mib: int
    minor: int
    pci: str = ""
    numa: int | None = None
    mig: bool = False
    mig_capable: bool = False
    mig_devices: tuple[MigDevice, ...] = ()
    links: dict[int, str] = {}


class Inventory(msgspec.Struct, frozen=True):
    """The GPUs of a node, by index, and the version of their driver."""

    driver: str = ""
    gpus: tuple[GpuFacts, ...] = ()

    @property
    def sliceable(self) -> tuple[GpuFacts, ...]:
        """Those that are not in MIG mode."""
        return tuple(gpu for gpu in self.gpus if not gpu.mig)

    @property
    def mig_devices(self) -> dict[str, tuple[GpuFacts, MigDevice]]:
        """Those of all GPUs by UUID, each with its GPU."""
        return {one.uuid: (gpu, one) for gpu in self.gpus for one in gpu.mig_devices}


class _Asked(msgspec.Struct):
    """A GPU and what must be known of two to say how they are linked."""

    gpu: NvmlGpu
    handle: Any
    pci: Any
    #: Where its active NVLinks end: the bus id of a GPU, or "switch".
    ends: list[str]

    @property
    def bus(self) -> str:
        return bus_id(self.pci.busId) if self.pci else ""


def read_inventory(nvml: Nvml, sysfs: Path = SYSFS) -> Inventory:
    """Ask what the node's GPUs are.

    Args:
        nvml: Open.
        sysfs: The kernel's view of devices.
    """
    api, asked = nvml.api, []
    for gpu in nvml.gpus:
        handle = nvml.handles[gpu.uuid]
        pci = _ask(api, "nvmlDeviceGetPciInfo", handle)
        asked.append(_Asked(gpu, handle, pci, _ends(api, handle)))
    return Inventory(nvml.driver, tuple(_facts(nvml, one, asked, sysfs) for one in asked))


def _facts(nvml: Nvml, one: _Asked, all_: list[_Asked], sysfs: Path) -> GpuFacts:
    api = nvml.api
    minor = _ask(api, "nvmlDeviceGetMinorNumber", one.handle)
    mode = _mig(api, one.handle)
    links = {two.gpu.index: _link(api, one, two) for two in all_ if two is not one}
    return GpuFacts(
        index=one.gpu.index,
        uuid=one.gpu.uuid,
        model=one.gpu.model,
        memory_mib=one.gpu.memory_bytes // _MIB,
        minor=one.gpu.index if minor is None else minor,
        pci=one.bus,
        numa=_numa(api, one, sysfs),
        mig=bool(mode),
        mig_capable=mode is not None,
        mig_devices=(_mig_devices(nvml, one.handle) or ()) if mode else (),
        links={index: word for index, word in links.items() if word},
    )


def with_mig_modes(inventory: Inventory, nvml: Nvml, silent: Collection[str] = ()) -> Inventory:
    """Return the same with MIG as it is now, mode and devices: of all this, only it changes.

    GPUs that are silent are not asked.
    """
    gpus = tuple(gpu if gpu.uuid in silent else _with_mig(nvml, gpu) for gpu in inventory.gpus)
    return Inventory(inventory.driver, gpus)


def _with_mig(nvml: Nvml, gpu: GpuFacts) -> GpuFacts:
    """Of a GPU that does not answer just now the last answer counts."""
    handle = nvml.handles.get(gpu.uuid)
    mode = None if handle is None else _mig(nvml.api, handle)
    devices = _mig_devices(nvml, handle) if mode else ()
    if mode is None or devices is None:
        return gpu
    return msgspec.structs.replace(gpu, mig=mode, mig_devices=devices)


def bus_id(said: str | bytes) -> str:
    """Return NVML's PCI bus id (`00000000:10:00.0`) as sysfs writes it (`0000:10:00.0`)."""
    domain, _, rest = text(said).lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError:
        return ""


def _link(api: Any, one: _Asked, two: _Asked) -> str:
    """The kind of link between two GPUs; "" if not known."""
    direct = one.ends.count(two.bus) if two.bus else 0
    if lines := direct or min(one.ends.count(_SWITCH), two.ends.count(_SWITCH)):
        return f"NV{lines}"
    bridges = {getattr(api, name, None): word for name, word in _BRIDGES}
    level = _ask(api, "nvmlDeviceGetTopologyCommonAncestor", one.handle, two.handle)
    return "" if level is None else bridges.get(level, "")


def _ends(api: Any, handle: Any) -> list[str]:
    ends = []
    for link in range(getattr(api, "NVML_NVLINK_MAX_LINKS", 0)):
        if not _ask(api, "nvmlDeviceGetNvLinkState", handle, link):
            continue  # not active, or there is none
        kind = _ask(api, "nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
        if kind is not None and kind == api.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            ends.append(_SWITCH)
        elif peer := _ask(api, "nvmlDeviceGetNvLinkRemotePciInfo", handle, link):
            ends.append(bus_id(peer.busId))
    return ends


def _mig(api: Any, handle: Any) -> bool | None:
    """Whether it is in MIG mode now; None if the GPU cannot be, or does not answer."""
    modes = _ask(api, "nvmlDeviceGetMigMode", handle)
    return None if modes is None else bool(modes[0])


def _mig_devices(nvml: Nvml, gpu: Any) -> tuple[MigDevice, ...] | None:
    """What a GPU in MIG mode is cut up into; None if it does not answer, or is just cut up anew."""
    api = nvml.api
    try:
        return tuple(
            MigDevice(
                text(api.nvmlDeviceGetUUID(one)),
                _profile(text(api.nvmlDeviceGetName(one))),
                int(api.nvmlDeviceGetGpuInstanceId(one)),
                int(api.nvmlDeviceGetComputeInstanceId(one)),
                int(api.nvmlDeviceGetAttributes(one).memorySizeMB),
            )
            for one in nvml.mig_handles(gpu)
        )
    except (api.NVMLError, AttributeError):
        return None


def _profile(name: str) -> str:
    """Of "NVIDIA H100 80GB HBM3 MIG 1g.10gb" the end."""
    return name.rpartition(" MIG ")[2]


def _numa(api: Any, one: _Asked, sysfs: Path) -> int | None:
    """The NUMA node that a GPU is attached to.

    Not `nvmlDeviceGetNumaNodeId`: where it answers, a GPU's own memory is a NUMA node, without CPUs
    (Grace Hopper), and that is its number.
    """
    device = sysfs / "bus/pci/devices" / one.bus
    try:
        model, vendor = (int((device / name).read_text(), 16) for name in ("device", "vendor"))
        if one.pci and model << 16 | vendor == one.pci.pciDeviceId:  # it is this GPU
            node = int((device / "numa_node").read_text())
            return node if node >= 0 else None
    except (OSError, ValueError):
        pass  # a kernel without NUMA, or a driver that is not the kernel's: NVML may know
    scope = getattr(api, "NVML_AFFINITY_SCOPE_NODE", 0)
    words = _ask(api, "nvmlDeviceGetMemoryAffinity", one.handle, _NODE_WORDS, scope)
    set_ = sum(int(word) << 64 * place for place, word in enumerate(words or ()))
    return set_.bit_length() - 1 if set_.bit_count() == 1 else None


def _ask(api: Any, name: str, *args: Any) -> Any:
    """What NVML answers; None if it, or the package over it, does not know."""
    try:
        return getattr(api, name)(*args)
    except (api.NVMLError, AttributeError):
        return None
