"""The layout of `native/vgpu/abi.h`: pages and frames that containers and the server share.

A change here is a change there; `tests/native/test_abi.py` compares every size and offset.
"""

import ctypes
from enum import IntEnum, IntFlag
from typing import Final

U8, U32, U64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64

#: Where a container finds its folder.
FOLDER: Final = "/run/alnair/vgpu"
ABI: Final = 1
LIMITS_MAGIC: Final = 0x314C4756414E4C41
COUNTERS_MAGIC: Final = 0x314347564E4C4155
FRAME_MAGIC: Final = 0x31464756414E4C41
DEVICES: Final = 16
SLOTS: Final = 256
#: GPU time that one process may leave unsettled; more is not believed.
LEFT_MOST_NS: Final = 10_000_000_000
#: Bytes that a context costs while nobody has measured it.
CONTEXT_DEFAULT: Final = 512 << 20


class State(IntEnum):
    """`enum vg_state`: what a container may do."""

    WAITING = 1
    REGISTERED = 2
    REFUSED = 3


class Flag(IntFlag):
    """`enum vg_device_flags`."""

    SOFT = 1
    LOW_PRIORITY = 2
    TIER_A = 4
    BORROWS = 8


class Call(IntEnum):
    """`enum vg_class`: API classes whose calls, bytes and time are counted."""

    LAUNCH = 0
    ALLOC = 1
    FREE = 2
    H2D = 3
    D2H = 4
    D2D = 5
    PEER = 6
    MEMSET = 7
    SYNC = 8
    OTHER = 9
    GRAPH = 10
    EVENT = 11
    MODULE = 12


#: Rows of `calls` in a slot; some are not used yet.
CLASSES: Final = 16
#: Of these, what our library counts.
COUNTED: Final = 13
#: And one that does not say.
COUNTED_BEFORE: Final = 10


class Operation(IntEnum):
    """`enum vg_operation`: what a peer asks."""

    REGISTER = 1
    PING = 2


class Reply(IntEnum):
    """`enum vg_reply`."""

    OK = 0
    REFUSED = 1
    BAD = 2
    BUSY = 3


class DeviceLimit(ctypes.LittleEndianStructure):
    """`struct vg_device_limit`."""

    _fields_ = [
        ("uuid", U8 * 16),
        ("memory_limit", U64),
        ("memory_overhead", U64),
        ("context_bytes", U64),
        ("compute_percent", U32),
        ("flags", U32),
        ("rate_ppm", U64),
        ("rate_until_ns", U64),
        ("cost_scale_ppm", U64),
        ("neighbours", U32),
        ("sm_count", U32),
        ("others_ppm", U64),
        ("window_period_us", U32),
        ("window_begin_us", U32),
        ("window_us", U32),
        ("reserved_a", U32),
        ("not_before_ns", U64),
        ("swap_limit", U64),
        ("memory_credit", U64),
    ]


class Loan(ctypes.LittleEndianStructure):
    """`struct vg_loan`."""

    _fields_ = [("bytes", U64), ("until_ns", U64), ("answered_ns", U64), ("reserved", U64)]


class Limits(ctypes.LittleEndianStructure):
    """`struct vg_limits`."""

    _fields_ = [
        ("magic", U64),
        ("abi", U32),
        ("n_devices", U32),
        ("state", U32),
        ("deadline_ms", U32),
        ("sequence", U64),
        ("heartbeat_ns", U64),
        ("host_limit", U64),
        ("container", U8 * 32),
        ("message", ctypes.c_char * 160),
        ("generation", U64),
        ("reserved", U8 * 8),
        ("device", DeviceLimit * DEVICES),
        ("loan", Loan * DEVICES),
        ("padding", U8 * (4096 - 256 - 160 * DEVICES)),
    ]


class Calls(ctypes.LittleEndianStructure):
    """`struct vg_calls`."""

    _fields_ = [("calls", U64), ("bytes", U64), ("ns", U64)]


class SlotDevice(ctypes.LittleEndianStructure):
    """`struct vg_slot_device`."""

    _fields_ = [
        ("held", U64),
        ("pending", U64),
        ("charged_ns", U64),
        ("throttled_ns", U64),
        ("launches", U64),
        ("refused", U64),
        ("waiting", U64),
        ("contexts", U64),
    ]


class Slot(ctypes.LittleEndianStructure):
    """`struct vg_slot`."""

    _fields_ = [
        ("owner", U64),
        ("started", U64),
        ("host_bytes", U64),
        ("unhooked", U64),
        ("pid_namespace", U64),
        ("image", U64),
        ("classes", U64),
        ("start_ns", U64),
        ("calls", Calls * CLASSES),
        ("loaded", U64 * DEVICES),
        ("padding_a", U8 * (1024 - 64 - 24 * CLASSES - 8 * DEVICES)),
        ("device", SlotDevice * DEVICES),
        ("leaving", U64 * DEVICES),
        ("unsettled", U64 * DEVICES),
        ("swapped", U64 * DEVICES),
        ("asked", U64 * DEVICES),
        ("padding_b", U8 * (4096 - 1024 - 96 * DEVICES)),
    ]


class Bucket(ctypes.LittleEndianStructure):
    """`struct vg_bucket`."""

    _fields_ = [
        ("tat_ns", U64),
        ("rate_ppm", U64),
        ("busy_ns", U64),
        ("left_ns", U64),
        ("left_at_ns", U64),
        ("left_debited_ns", U64),
        ("reserved", U64 * 2),
    ]


class Counters(ctypes.LittleEndianStructure):
    """`struct vg_counters`."""

    _fields_ = [
        ("magic", U64),
        ("abi", U32),
        ("n_slots", U32),
        ("generation", U64),
        ("slots_used", U64),
        ("registrar", U64),
        ("reserved", U64 * 3),
        ("bucket", Bucket * DEVICES),
        ("padding", U8 * (4096 - 64 - 64 * DEVICES)),
        ("slot", Slot * SLOTS),
    ]


class Frame(ctypes.LittleEndianStructure):
    """`struct vg_frame`."""

    _fields_ = [
        ("magic", U64),
        ("abi", U32),
        ("operation", U32),
        ("pid", U64),
        ("driver_version", U32),
        ("library_version", U32),
        ("reserved", U8 * 32),
        ("text", ctypes.c_char * 192),
    ]


FRAME_BYTES: Final = ctypes.sizeof(Frame)
LIMITS_BYTES: Final = ctypes.sizeof(Limits)
COUNTERS_BYTES: Final = ctypes.sizeof(Counters)
BUCKET_BYTES: Final = ctypes.sizeof(Bucket)
SLOT_BYTES: Final = ctypes.sizeof(Slot)
HEAD_BYTES: Final = COUNTERS_BYTES - SLOTS * SLOT_BYTES
DEVICE_BYTES: Final = ctypes.sizeof(DeviceLimit)
SLOT_DEVICE_BYTES: Final = ctypes.sizeof(SlotDevice)


def offset(kind: type[ctypes.Structure], field: str) -> int:
    """Return a field's offset in bytes."""
    found: int = getattr(kind, field).offset
    return found
