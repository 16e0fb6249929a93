"""A container's folder as the vGPU server prepares it, for tests without a server.

The layout is native/vgpu/abi.h, written here a second time on purpose: a test holds the server's
layout to the header, and these tests must not follow an error of the server. `Container` writes the
state REGISTERED at once; what a server would change while the container runs, a test changes.
"""

import ctypes
import mmap
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from native import build

LIMITS_MAGIC = 0x314C4756414E4C41
COUNTERS_MAGIC = 0x314347564E4C4155
ABI = 1
DEVICES = 16
SLOTS = 256
PAGE = 4096
WAITING, REGISTERED, REFUSED = 1, 2, 3
SOFT, LOW_PRIORITY, TIER_A, BORROWS = 1, 2, 4, 8
CLASSES = (
    *("launch", "alloc", "free", "h2d", "d2h", "d2d", "peer", "memset", "sync", "other"),
    *("graph", "event", "module"),
)

_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64
_Page = TypeVar("_Page", bound=ctypes.Structure)


class DeviceLimit(ctypes.Structure):
    """struct vg_device_limit."""

    _fields_ = (
        ("uuid", ctypes.c_uint8 * 16),
        ("memory_limit", _U64),
        ("memory_overhead", _U64),
        ("context_bytes", _U64),
        ("compute_percent", _U32),
        ("flags", _U32),
        ("rate_ppm", _U64),
        ("rate_until_ns", _U64),
        ("cost_scale_ppm", _U64),
        ("neighbours", _U32),
        ("sm_count", _U32),
        ("others_ppm", _U64),
        ("window_period_us", _U32),
        ("window_begin_us", _U32),
        ("window_us", _U32),
        ("reserved_a", _U32),
        ("not_before_ns", _U64),
        ("swap_limit", _U64),
        ("memory_credit", _U64),
    )


class Limits(ctypes.Structure):
    """struct vg_limits."""

    _fields_ = (
        ("magic", _U64),
        ("abi", _U32),
        ("n_devices", _U32),
        ("state", _U32),
        ("deadline_ms", _U32),
        ("sequence", _U64),
        ("heartbeat_ns", _U64),
        ("host_limit", _U64),
        ("container", ctypes.c_char * 32),
        ("message", ctypes.c_char * 160),
        ("generation", _U64),
        ("reserved", ctypes.c_uint8 * 8),
        ("device", DeviceLimit * DEVICES),
        ("loan", (_U64 * 4) * DEVICES),
    )


class Calls(ctypes.Structure):
    """struct vg_calls."""

    _fields_ = (("calls", _U64), ("bytes", _U64), ("ns", _U64))


class SlotDevice(ctypes.Structure):
    """struct vg_slot_device."""

    _fields_ = tuple(
        (name, _U64)
        for name in (
            "held",
            "pending",
            "charged_ns",
            "throttled_ns",
            "launches",
            "refused",
            "waiting",
            "contexts",
        )
    )


class Slot(ctypes.Structure):
    """struct vg_slot."""

    _fields_ = (
        ("owner", _U64),
        ("started", _U64),
        ("host_bytes", _U64),
        ("unhooked", _U64),
        ("pid_namespace", _U64),
        ("image", _U64),
        ("classes", _U64),
        ("start_ns", _U64),
        ("calls", Calls * 16),
        ("loaded", _U64 * DEVICES),
        ("padding_a", ctypes.c_uint8 * (1024 - 64 - 24 * 16 - 8 * DEVICES)),
        ("device", SlotDevice * DEVICES),
        ("leaving", _U64 * DEVICES),
        ("unsettled", _U64 * DEVICES),
        ("swapped", _U64 * DEVICES),
        ("asked", _U64 * DEVICES),
        ("padding_b", ctypes.c_uint8 * (PAGE - 1024 - 96 * DEVICES)),
    )


class Counters(ctypes.Structure):
    """struct vg_counters."""

    _fields_ = (
        ("magic", _U64),
        ("abi", _U32),
        ("n_slots", _U32),
        ("generation", _U64),
        ("slots_used", _U64),
        ("registrar", _U64),
        ("reserved", _U64 * 3),
        ("bucket", (_U64 * 8) * DEVICES),
        ("padding", ctypes.c_uint8 * (PAGE - 64 - 64 * DEVICES)),
        ("slot", Slot * SLOTS),
    )


def counters_of(folder: Path) -> Counters:
    """The counters page of a container's folder that is there, as its processes can write it."""
    with (folder / "counters").open("r+b") as file:
        return Counters.from_buffer(mmap.mmap(file.fileno(), PAGE * (1 + SLOTS)))


class Container:
    """One container's folder, on tmpfs.

    Args:
        uuids: the GPUs that it may use, a row each (`Fake.uuid`).
        deadline_ms: how long its processes wait for a registration.
        state: REGISTERED, unless a test is about waiting or refusal.
        limits: fields of `DeviceLimit` for every row, such as memory_limit=..., compute_percent=...
    """

    def __init__(
        self,
        *uuids: uuid.UUID,
        deadline_ms: int = 5000,
        state: int = REGISTERED,
        **limits: int,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="alnair-vgpu-", dir="/dev/shm")
        self.folder = Path(self._folder.name)
        self.limits = _map(self.folder / "limits", Limits, PAGE)
        self.counters = _map(self.folder / "counters", Counters, PAGE * (1 + SLOTS))
        self.counters.abi, self.counters.n_slots, self.counters.generation = ABI, SLOTS, 1
        self.counters.magic = COUNTERS_MAGIC
        self.limits.abi, self.limits.n_devices = ABI, len(uuids)
        self.limits.state, self.limits.deadline_ms, self.limits.generation = state, deadline_ms, 1
        self.limits.container = self.folder.name.encode()[:31]
        for row, its in enumerate(uuids):
            self.limits.device[row].uuid[:] = its.bytes
            self.change(row, **limits)
        self.limits.magic = LIMITS_MAGIC

    def close(self) -> None:
        """Removes the folder; clients keep what they have mapped."""
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def environment(self, *, preload: bool = True) -> dict[str, str]:
        """What to add to `Fake.environment` for a client that lives in this container."""
        found = {"ALNAIR_VGPU_DIR": str(self.folder)}
        return {**found, "LD_PRELOAD": str(build.INTERPOSER)} if preload else found

    @contextmanager
    def writing(self) -> Iterator[Limits]:
        """The limits page to change several fields of: readers see all of the changes or none."""
        self.limits.sequence += 1
        try:
            yield self.limits
        finally:
            self.limits.sequence += 1

    def change(self, row: int = 0, **limits: int) -> None:
        """Changes fields of a GPU's row while the container runs."""
        known = {name for name, *_ in DeviceLimit._fields_}
        assert limits.keys() <= known, f"no such field: {sorted(limits.keys() - known)}"
        with self.writing() as page:
            for name, value in limits.items():
                setattr(page.device[row], name, value)

    # ---- what its processes say --------------------------------------------------------------

    def slots(self) -> list[Slot]:
        """The slots of processes now in the container."""
        return [slot for slot in self.counters.slot if slot.owner]

    def total(self, field: str, row: int = 0) -> int:
        """A field of `SlotDevice` summed over all processes: "held", "charged_ns", ..."""
        return sum(int(getattr(slot.device[row], field)) for slot in self.slots())

    def calls(self, name: str) -> tuple[int, int, int]:
        """(calls, bytes, ns) of an API class of CLASSES, over all processes."""
        rows = [slot.calls[CLASSES.index(name)] for slot in self.slots()]
        return sum(r.calls for r in rows), sum(r.bytes for r in rows), sum(r.ns for r in rows)


def _map(path: Path, structure: type[_Page], size: int) -> _Page:
    with path.open("w+b") as file:
        file.truncate(size)
        # The mapping stays as long as the structure, which keeps its buffer alive.
        return structure.from_buffer(mmap.mmap(file.fileno(), size))
