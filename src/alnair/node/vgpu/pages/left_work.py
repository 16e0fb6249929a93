"""GPU time that a process left unsettled when it ended: its container's bucket takes it over.

The part of native/vgpu/compute/left_work.c that is the server's, where it frees the slot first. A
tenant that writes nonsense here is only ever held back by it, as each process counts up to a bound.
"""

import os
import time

from alnair.node.vgpu.pages import abi

_UNSETTLED = abi.offset(abi.Slot, "unsettled")
_DEVICES = abi.offset(abi.Slot, "device")
_CHARGED = abi.offset(abi.SlotDevice, "charged_ns")
_BUCKETS = abi.offset(abi.Counters, "bucket")
_LEFT = abi.offset(abi.Bucket, "left_ns")
_BUCKET_BYTES = abi.offset(abi.Counters, "padding") - _BUCKETS
_WORD = 1 << 64


def take_over(fd: int, first: int, rows: int) -> None:
    """Add what the slot that begins at `first` leaves unsettled, on the container's GPUs.

    Under the lock for freeing slots (native/vgpu/abi.h), before the slot is wiped.
    """
    size = rows * 8
    marks = memoryview(os.pread(fd, size, first + _UNSETTLED).ljust(size, b"\0")).cast("Q")
    if not any(marks):
        return
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for row, mark in enumerate(marks):
        charged = _read(fd, first + _DEVICES + row * abi.SLOT_DEVICE_BYTES + _CHARGED)
        used = (now - mark - charged) % _WORD
        if not mark or not 0 < used < _WORD // 2:
            continue
        at = _BUCKETS + row * (_BUCKET_BYTES // abi.DEVICES) + _LEFT
        left = (_read(fd, at) + min(used, abi.LEFT_MOST_NS)) % _WORD
        os.pwrite(fd, now.to_bytes(8, "little"), at + 8)
        os.pwrite(fd, left.to_bytes(8, "little"), at)


def _read(fd: int, at: int) -> int:
    return int.from_bytes(os.pread(fd, 8, at), "little")
