"""Every way to get device memory: each path is a script of driver calls, with what frees it again.

A path yields after each step; at every yield the ledger must equal what the fake GPU knows to be
used, to the byte, and at its end it must be back where it began.
"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from native.calls import BLOCK, MIB, OUT_OF_MEMORY, SUCCESS, Calls, Out, Var

Script = Callable[[Calls], Iterator[None]]

#: Constants of the driver's ABI.
FORMAT_FLOAT, LAYERED = 0x20, 1
DEVICE, POSIX_FD = 1, 1
THRESHOLD = 4


class Path(NamedTuple):
    """A way to device memory.

    Args:
        script: its calls.
        hooks: functions that must be hooked for the ledger to stay right.
        gpus: how many the machine needs.
    """

    script: Script
    hooks: tuple[str, ...]
    gpus: int = 1


PATHS: dict[str, Path] = {}


def path(*hooks: str, gpus: int = 1) -> Callable[[Script], Script]:
    """Adds a script to PATHS."""

    def add(script: Script) -> Script:
        PATHS[script.__name__] = Path(script, hooks, gpus)
        return script

    return add


class RefusedError(AssertionError):
    """A call of a path was refused memory."""


def ok(result: int) -> None:
    """A call that has to succeed."""
    if result == OUT_OF_MEMORY:
        raise RefusedError
    assert result == SUCCESS, f"CUresult {result}"


# ---- plain ---------------------------------------------------------------------------------------


@path("cuMemAlloc_v2", "cuMemFree_v2")
def plain(call: Calls) -> Iterator[None]:
    for name, size in (("a", 5 * MIB), ("b", 1), ("c", 700_000), ("d", 3 * BLOCK), ("e", 900_000)):
        ok(call("cuMemAlloc_v2", Out(name), size))
        yield
    for name in "badce":
        ok(call("cuMemFree_v2", Var(name)))
        yield


@path("cuMemAlloc", "cuMemFree")
def plain_of_cuda_3(call: Calls) -> Iterator[None]:
    ok(call("cuMemAlloc", Out("a"), 5 * MIB))
    yield
    ok(call("cuMemFree", Var("a")))
    yield


@path("cuMemAllocPitch_v2")
def pitched(call: Calls) -> Iterator[None]:
    ok(call("cuMemAllocPitch_v2", Out("a"), Out("pitch"), 1001, 4000, 4))
    yield
    ok(call("cuMemAllocPitch_v2", Out("b"), Out("pitch"), 3, 7, 16))
    yield
    ok(call("cuMemFree_v2", Var("b")))
    ok(call("cuMemFree_v2", Var("a")))
    yield


@path("cuMemAllocPitch")
def pitched_of_cuda_3(call: Calls) -> Iterator[None]:
    ok(call("cuMemAllocPitch", Out("a"), Out("pitch"), 1001, 4000, 4))
    yield
    ok(call("cuMemFree", Var("a")))
    yield


@path("cuMemAllocManaged", "cuMemFree_v2")
def managed(call: Calls) -> Iterator[None]:
    ok(call("cuMemAllocManaged", Out("a"), 3 * MIB, 1))
    ok(call("cuMemAllocManaged", Out("b"), 100, 1))
    yield
    ok(call("cuMemFree_v2", Var("a")))
    yield
    ok(call("cuMemFree_v2", Var("b")))
    yield


# ---- arrays --------------------------------------------------------------------------------------


def flat(width: int, height: int, channels: int = 4) -> bytes:
    return struct.pack("<QQII", width, height, FORMAT_FLOAT, channels)


def deep(width: int, height: int, depth: int, flags: int = 0) -> bytes:
    return struct.pack("<QQQIIII", width, height, depth, FORMAT_FLOAT, 2, flags, 0)


@path("cuArrayCreate_v2", "cuArrayDestroy")
def array(call: Calls) -> Iterator[None]:
    ok(call("cuArrayCreate_v2", Out("a"), flat(1000, 777)))
    yield
    ok(call("cuArrayCreate_v2", Out("b"), flat(10, 0, 1)))
    yield
    ok(call("cuArrayDestroy", Var("a")))
    yield
    ok(call("cuArrayDestroy", Var("b")))
    yield


@path("cuArrayCreate")
def array_of_cuda_3(call: Calls) -> Iterator[None]:
    ok(call("cuArrayCreate", Out("a"), struct.pack("<IIII", 1000, 777, FORMAT_FLOAT, 4)))
    yield
    ok(call("cuArrayDestroy", Var("a")))
    yield


@path("cuArray3DCreate_v2")
def array_3d(call: Calls) -> Iterator[None]:
    ok(call("cuArray3DCreate_v2", Out("a"), deep(100, 101, 102)))
    yield
    ok(call("cuArray3DCreate_v2", Out("b"), deep(300, 301, 9, LAYERED)))
    yield
    ok(call("cuArrayDestroy", Var("a")))
    ok(call("cuArrayDestroy", Var("b")))
    yield


@path("cuArray3DCreate")
def array_3d_of_cuda_3(call: Calls) -> Iterator[None]:
    shape = struct.pack("<IIIIII", 100, 101, 102, FORMAT_FLOAT, 2, 0)
    ok(call("cuArray3DCreate", Out("a"), shape))
    yield
    ok(call("cuArrayDestroy", Var("a")))
    yield


@path("cuMipmappedArrayCreate", "cuMipmappedArrayDestroy")
def mipmapped(call: Calls) -> Iterator[None]:
    ok(call("cuMipmappedArrayCreate", Out("a"), deep(1024, 1023, 0), 11))
    yield
    ok(call("cuMipmappedArrayGetLevel", Out("level"), Var("a"), 3))
    yield
    ok(call("cuMipmappedArrayDestroy", Var("a")))
    yield


# ---- pools ---------------------------------------------------------------------------------------


def keep(call: Calls, pool: str, threshold: int = 2**64 - 1) -> None:
    """The pool keeps what is freed, up to so many bytes."""
    ok(call("cuMemPoolSetAttribute", Var(pool), THRESHOLD, struct.pack("<Q", threshold)))


@path("cuMemAllocAsync", "cuStreamSynchronize")
def stream_ordered(call: Calls) -> Iterator[None]:
    ok(call("cuMemAllocAsync", Out("a"), 40 * MIB, 0))
    ok(call("cuMemAllocAsync", Out("b"), 1000, 0))
    yield
    ok(call("cuMemFreeAsync", Var("a"), 0))
    yield
    ok(call("cuMemFreeAsync", Var("b"), 0))
    ok(call("cuStreamSynchronize", 0))
    yield


@path("cuMemAllocAsync_ptsz", "cuStreamSynchronize_ptsz")
def stream_ordered_per_thread(call: Calls) -> Iterator[None]:
    ok(call("cuMemAllocAsync_ptsz", Out("a"), 40 * MIB, 0))
    yield
    ok(call("cuMemFreeAsync_ptsz", Var("a"), 0))
    ok(call("cuStreamSynchronize_ptsz", 0))
    yield


@path("cuCtxSynchronize")
def stream_ordered_until_the_context_is_done(call: Calls) -> Iterator[None]:
    ok(call("cuMemAllocAsync", Out("a"), MIB, 0))
    yield
    ok(call("cuMemFreeAsync", Var("a"), 0))
    ok(call("cuCtxSynchronize"))
    yield


@path("cuMemPoolTrimTo")
def stock_that_is_trimmed(call: Calls) -> Iterator[None]:
    ok(call("cuDeviceGetMemPool", Out("pool"), 0))
    keep(call, "pool")
    ok(call("cuMemAllocAsync", Out("a"), 70 * MIB, 0))
    ok(call("cuMemFreeAsync", Var("a"), 0))
    ok(call("cuStreamSynchronize", 0))
    yield
    ok(call("cuMemPoolTrimTo", Var("pool"), 0))
    yield


def pool_of(location: int, device: int) -> bytes:
    return struct.pack("<IIIiQQHBB52x", 1, 0, location, device, 0, 0, 0, 0, 0)


@path("cuMemAllocFromPoolAsync", "cuMemPoolDestroy")
def own_pool(call: Calls) -> Iterator[None]:
    ok(call("cuMemPoolCreate", Out("pool"), pool_of(DEVICE, 0)))
    ok(call("cuMemAllocFromPoolAsync", Out("a"), 3 * MIB, Var("pool"), 0))
    yield
    keep(call, "pool")
    ok(call("cuMemFreeAsync", Var("a"), 0))
    ok(call("cuStreamSynchronize", 0))
    yield
    ok(call("cuMemPoolDestroy", Var("pool")))
    yield


@path("cuMemAllocFromPoolAsync_ptsz", "cuMemFreeAsync_ptsz")
def own_pool_per_thread_destroyed_before_its_memory_is_freed(call: Calls) -> Iterator[None]:
    ok(call("cuMemPoolCreate", Out("pool"), pool_of(DEVICE, 0)))
    ok(call("cuMemAllocFromPoolAsync_ptsz", Out("a"), 3 * MIB, Var("pool"), 0))
    ok(call("cuMemPoolDestroy", Var("pool")))
    yield
    ok(call("cuMemFreeAsync_ptsz", Var("a"), 0))
    yield


@path("cuMemFreeAsync")
def own_pool_destroyed_before_its_memory_is_freed(call: Calls) -> Iterator[None]:
    ok(call("cuMemPoolCreate", Out("pool"), pool_of(DEVICE, 0)))
    ok(call("cuMemAllocFromPoolAsync", Out("a"), 3 * MIB, Var("pool"), 0))
    ok(call("cuMemPoolDestroy", Var("pool")))
    yield
    ok(call("cuMemFreeAsync", Var("a"), 0))
    yield


@path("cuMemPoolCreate", gpus=2)
def pool_of_another_gpu(call: Calls) -> Iterator[None]:
    ok(call("cuMemPoolCreate", Out("pool"), pool_of(DEVICE, 1)))
    ok(call("cuMemAllocFromPoolAsync", Out("a"), 3 * MIB, Var("pool"), 0))
    yield
    ok(call("cuMemFreeAsync", Var("a"), 0))
    ok(call("cuMemPoolDestroy", Var("pool")))
    yield


@path("cuMemFree_v2")
def stream_ordered_freed_as_plain(call: Calls) -> Iterator[None]:
    ok(call("cuMemPoolCreate", Out("pool"), pool_of(DEVICE, 0)))
    ok(call("cuMemAllocFromPoolAsync", Out("a"), 3 * MIB, Var("pool"), 0))
    ok(call("cuMemPoolDestroy", Var("pool")))
    yield
    ok(call("cuMemFree_v2", Var("a")))
    yield


@path("cuMemFreeAsync")
def plain_freed_as_stream_ordered(call: Calls) -> Iterator[None]:
    ok(call("cuMemAlloc_v2", Out("a"), 3 * MIB))
    ok(call("cuMemAlloc_v2", Out("b"), 1000))
    yield
    ok(call("cuMemFreeAsync", Var("a"), 0))
    ok(call("cuMemFreeAsync", Var("b"), 0))
    ok(call("cuStreamSynchronize", 0))
    yield
