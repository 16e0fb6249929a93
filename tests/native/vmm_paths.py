"""The paths of virtual memory management, and of all that holds its memory (see memory_paths)."""

import struct
from collections.abc import Iterator

from native.calls import BLOCK, SUCCESS, Calls, Out, Var
from native.memory_paths import DEVICE, POSIX_FD, deep, ok, path


def properties(location: int = DEVICE, device: int = 0, export: int = 0) -> bytes:
    return struct.pack("<IIIiQQ", 1, export, location, device, 0, 0)


@path("cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap")
def released_but_mapped(call: Calls) -> Iterator[None]:
    ok(call("cuMemAddressReserve", Out("at"), 8 * BLOCK, 0, 0, 0))
    ok(call("cuMemCreate", Out("h"), 4 * BLOCK, properties(), 0))
    yield
    ok(call("cuMemMap", Var("at"), 4 * BLOCK, 0, Var("h"), 0))
    yield
    ok(call("cuMemRelease", Var("h")))
    yield
    ok(call("cuMemUnmap", Var("at"), 4 * BLOCK))
    yield
    ok(call("cuMemAddressFree", Var("at"), 8 * BLOCK))


@path("cuMemRetainAllocationHandle")
def retained(call: Calls) -> Iterator[None]:
    ok(call("cuMemAddressReserve", Out("at"), 2 * BLOCK, 0, 0, 0))
    ok(call("cuMemCreate", Out("h"), 2 * BLOCK, properties(), 0))
    ok(call("cuMemMap", Var("at"), 2 * BLOCK, 0, Var("h"), 0))
    ok(call("cuMemRelease", Var("h")))
    ok(call("cuMemRetainAllocationHandle", Out("again"), Var("at")))
    ok(call("cuMemUnmap", Var("at"), 2 * BLOCK))
    yield
    ok(call("cuMemRelease", Var("again")))
    yield


@path("cuMemUnmap")
def several_mappings_unmapped_at_once(call: Calls) -> Iterator[None]:
    ok(call("cuMemAddressReserve", Out("at"), 2 * BLOCK, 0, 0, 0))
    ok(call("cuMemCreate", Out("h"), BLOCK, properties(), 0))
    ok(call("cuMemCreate", Out("i"), BLOCK, properties(), 0))
    ok(call("cuMemMap", Var("at"), BLOCK, 0, Var("h"), 0))
    ok(call("cuMemMap", call.get("at") + BLOCK, BLOCK, 0, Var("i"), 0))
    ok(call("cuMemRelease", Var("h")))
    ok(call("cuMemRelease", Var("i")))
    yield
    ok(call("cuMemUnmap", Var("at"), 2 * BLOCK))
    yield


@path("cuMemImportFromShareableHandle")
def imported_where_it_was_exported(call: Calls) -> Iterator[None]:
    ok(call("cuMemCreate", Out("h"), BLOCK, properties(export=POSIX_FD), 0))
    ok(call("cuMemExportToShareableHandle", Out("fd"), Var("h"), POSIX_FD, 0))
    ok(call("cuMemImportFromShareableHandle", Out("i"), Var("fd"), POSIX_FD))
    call.ask("close", Var("fd"))
    yield
    ok(call("cuMemRelease", Var("h")))
    yield
    ok(call("cuMemRelease", Var("i")))
    yield


SPARSE, ARRAY, MIPMAP, MAP, UNMAP, LEVEL, TAIL = 0x40, 0, 1, 1, 2, 0, 1


def mapping(
    resource: int, owner: int, operation: int, handle: int = 0, x: int = 0, part: int = LEVEL
) -> bytes:
    """A CUarrayMapInfo of a tile, or of the tail of the levels."""
    where = struct.pack("<8I", 0, 0, x, 0, 0, 128, 128, 1)
    where = struct.pack("<IxxxxQQ8x", 0, 0, 65536) if part == TAIL else where
    head = struct.pack("<IxxxxQIxxxx", resource, owner, part)
    return head + where + struct.pack("<IIQQIIQ", operation, 0, handle, 0, 1, 0, 0)


def tiles(call: Calls, function: str, *infos: bytes) -> int:
    return call(function, b"".join(infos), len(infos), 0)


def sparse(call: Calls, *handles: str) -> int:
    """Makes a sparse array and physical memory; returns the array."""
    ok(call("cuArray3DCreate_v2", Out("a"), deep(1024, 1024, 0, SPARSE)))
    for name in handles:
        ok(call("cuMemCreate", Out(name), BLOCK, properties(), 0))
    return call.get("a")


@path("cuMemMapArrayAsync", "cuArrayDestroy")
def bound_to_a_sparse_array(call: Calls) -> Iterator[None]:
    bind = "cuMemMapArrayAsync"
    a = sparse(call, "h", "i", "j")
    h, i, j = map(call.get, "hij")
    ok(tiles(call, bind, mapping(ARRAY, a, MAP, h), mapping(ARRAY, a, MAP, h, 128)))
    ok(tiles(call, bind, mapping(ARRAY, a, MAP, i, 256), mapping(ARRAY, a, MAP, j, 384)))
    for name in "hij":
        ok(call("cuMemRelease", Var(name)))
    yield
    ok(tiles(call, bind, mapping(ARRAY, a, UNMAP, x=256), mapping(ARRAY, a, UNMAP)))
    ok(call("cuCtxSynchronize"))
    yield
    assert tiles(call, bind, mapping(ARRAY, a, UNMAP, x=640)) != SUCCESS
    ok(tiles(call, bind, mapping(ARRAY, a, UNMAP, x=128)))
    ok(call("cuCtxSynchronize"))
    yield
    ok(call("cuArrayDestroy", Var("a")))
    yield


@path("cuMemMapArrayAsync")
def bound_in_place_of_other_memory(call: Calls) -> Iterator[None]:
    a = sparse(call, "h", "i")
    h, i = map(call.get, "hi")
    ok(tiles(call, "cuMemMapArrayAsync", mapping(ARRAY, a, MAP, h)))
    ok(call("cuMemRelease", Var("h")))
    yield
    ok(tiles(call, "cuMemMapArrayAsync", mapping(ARRAY, a, MAP, i)))
    ok(call("cuCtxSynchronize"))
    ok(call("cuMemRelease", Var("i")))
    yield
    assert tiles(call, "cuMemMapArrayAsync", mapping(ARRAY, a, MAP, 12345)) != SUCCESS
    ok(tiles(call, "cuMemMapArrayAsync", mapping(ARRAY, a, UNMAP)))
    ok(call("cuCtxSynchronize"))
    yield
    ok(call("cuArrayDestroy", Var("a")))


@path("cuMemMapArrayAsync_ptsz", "cuMipmappedArrayDestroy")
def bound_to_a_sparse_mipmap_per_thread(call: Calls) -> Iterator[None]:
    ok(call("cuMipmappedArrayCreate", Out("a"), deep(1024, 1024, 0, SPARSE), 11))
    ok(call("cuMemCreate", Out("h"), BLOCK, properties(), 0))
    a, h = map(call.get, "ah")
    ok(tiles(call, "cuMemMapArrayAsync_ptsz", mapping(MIPMAP, a, MAP, h, part=TAIL)))
    ok(call("cuMemRelease", Var("h")))
    yield
    ok(call("cuMipmappedArrayDestroy", Var("a")))
    yield


@path("cuMemMapArrayAsync", "cuCtxDestroy_v2")
def bound_to_an_array_that_goes_with_its_context(call: Calls) -> Iterator[None]:
    ok(call("cuCtxCreate_v2", Out("own"), 0, 0))
    a = sparse(call, "h")
    ok(tiles(call, "cuMemMapArrayAsync", mapping(ARRAY, a, MAP, call.get("h"))))
    ok(call("cuMemRelease", Var("h")))
    yield
    ok(call("cuCtxDestroy_v2", Var("own")))
    yield


def multicast(call: Calls) -> None:
    """Makes a multicast object and physical memory."""
    ok(call("cuMulticastCreate", Out("m"), struct.pack("<IxxxxQQQ", 1, 4 * BLOCK, 0, 0)))
    ok(call("cuMulticastAddDevice", Var("m"), 0))
    ok(call("cuMemCreate", Out("h"), BLOCK, properties(), 0))


@path("cuMulticastBindMem", "cuMulticastUnbind")
def bound_to_a_multicast_object(call: Calls) -> Iterator[None]:
    multicast(call)
    ok(call("cuMulticastBindMem", Var("m"), 0, Var("h"), 0, BLOCK, 0))
    ok(call("cuMulticastBindMem", Var("m"), BLOCK, Var("h"), 0, BLOCK, 0))
    ok(call("cuMemRelease", Var("h")))
    yield
    ok(call("cuMulticastUnbind", Var("m"), 0, 0, BLOCK))
    yield
    assert call("cuMulticastUnbind", Var("m"), 0, 0, BLOCK) != SUCCESS
    ok(call("cuMulticastUnbind", Var("m"), 0, BLOCK, BLOCK))
    yield
    ok(call("cuMemRelease", Var("m")))
    yield


@path("cuMulticastCreate", "cuMulticastBindMem_v2", "cuMemRelease")
def bound_to_a_multicast_object_until_it_goes(call: Calls) -> Iterator[None]:
    multicast(call)
    ok(call("cuMulticastBindMem_v2", Var("m"), 0, 0, Var("h"), 0, BLOCK, 0))
    ok(call("cuMemRelease", Var("h")))
    yield
    ok(call("cuMemAddressReserve", Out("at"), 4 * BLOCK, 0, 0, 0))
    ok(call("cuMemMap", Var("at"), 4 * BLOCK, 0, Var("m"), 0))
    ok(call("cuMemRelease", Var("m")))
    yield
    ok(call("cuMemUnmap", Var("at"), 4 * BLOCK))
    yield


def bound_by_address(call: Calls, name: str, *device: int) -> Iterator[None]:
    multicast(call)
    ok(call("cuMemAddressReserve", Out("at"), BLOCK, 0, 0, 0))
    ok(call("cuMemMap", Var("at"), BLOCK, 0, Var("h"), 0))
    ok(call("cuMemRelease", Var("h")))
    ok(call(name, Var("m"), *device, 0, Var("at"), BLOCK, 0))
    ok(call("cuMemUnmap", Var("at"), BLOCK))
    yield
    ok(call("cuMemRelease", Var("m")))
    yield


@path("cuMulticastBindAddr")
def address_bound_to_a_multicast_object(call: Calls) -> Iterator[None]:
    yield from bound_by_address(call, "cuMulticastBindAddr")


@path("cuMulticastBindAddr_v2")
def address_bound_to_a_multicast_object_of_cuda_13(call: Calls) -> Iterator[None]:
    yield from bound_by_address(call, "cuMulticastBindAddr_v2", 0)


def exported(call: Calls, *descriptors: str) -> None:
    """Makes physical memory, exports it, and releases it."""
    ok(call("cuMemCreate", Out("h"), BLOCK, properties(export=POSIX_FD), 0))
    for name in descriptors:
        ok(call("cuMemExportToShareableHandle", Out(name), Var("h"), POSIX_FD, 0))
    ok(call("cuMemRelease", Var("h")))


@path("cuMemExportToShareableHandle", "cuCtxSynchronize")
def held_by_descriptors_only(call: Calls) -> Iterator[None]:
    exported(call, "f", "g")
    yield
    call.ask("close", Var("f"))
    ok(call("cuCtxSynchronize"))
    yield
    call.ask("close", Var("g"))
    ok(call("cuCtxSynchronize"))
    yield


@path()
def held_by_a_descriptor_whose_number_another_gets(call: Calls) -> Iterator[None]:
    exported(call, "f")
    ok(call("cuMemCreate", Out("i"), BLOCK, properties(export=POSIX_FD), 0))
    call.ask("close", Var("f"))
    ok(call("cuMemExportToShareableHandle", Out("g"), Var("i"), POSIX_FD, 0))
    assert call.get("f") == call.get("g")
    yield
    call.ask("close", Var("g"))
    ok(call("cuMemRelease", Var("i")))
    yield


@path("cuMemImportFromShareableHandle")
def imported_when_only_its_descriptor_held_it(call: Calls) -> Iterator[None]:
    exported(call, "f")
    ok(call("cuMemImportFromShareableHandle", Out("i"), Var("f"), POSIX_FD))
    call.ask("close", Var("f"))
    ok(call("cuCtxSynchronize"))
    yield
    ok(call("cuMemRelease", Var("i")))
    yield


@path("cuMemCreate", gpus=2)
def physical_memory_of_another_gpu(call: Calls) -> Iterator[None]:
    ok(call("cuMemCreate", Out("h"), BLOCK, properties(device=1), 0))
    yield
    ok(call("cuMemRelease", Var("h")))
    yield
