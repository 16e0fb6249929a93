"""The memory that nobody asks for by name: contexts, their limits, modules and libraries.

More paths for tests/native/memory_paths.py, which says what a path is.
"""

import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from native.calls import MIB, Calls, Out, Var
from native.memory_paths import PATHS, Path, Script, flat, ok, path


def contexts(create: str, destroy: str, *before: int) -> Script:
    def script(call: Calls) -> Iterator[None]:
        ok(call(create, Out("own"), *before, 0, 0))
        yield
        ok(call("cuMemAlloc_v2", Out("a"), 3 * MIB))
        ok(call("cuModuleLoadData", Out("m"), b".version 8.0\n" + b"x" * 5000 + b"\0"))
        ok(call("cuArrayCreate_v2", Out("b"), flat(1000, 777)))
        ok(call("cuMemAllocManaged", Out("c"), 3 * MIB, 1))
        yield
        ok(call(destroy, Var("own")))
        ok(call("cuCtxSetCurrent", Var("context")))
        yield

    return script


for _name, _create, _destroy, _before in (
    ("context_of_cuda_3", "cuCtxCreate", "cuCtxDestroy", ()),
    ("context", "cuCtxCreate_v2", "cuCtxDestroy_v2", ()),
    ("context_of_cuda_11", "cuCtxCreate_v3", "cuCtxDestroy_v2", (0, 0)),
    ("context_of_cuda_13", "cuCtxCreate_v4", "cuCtxDestroy_v2", (0,)),
):
    PATHS[_name] = Path(contexts(_create, _destroy, *_before), (_create, _destroy))


def primaries(end: str, retains: int) -> Script:
    def script(call: Calls) -> Iterator[None]:
        yield
        for _ in range(retains):
            ok(call("cuDevicePrimaryCtxRetain", Out("context"), 0))
        ok(call("cuCtxSetCurrent", Var("context")))
        ok(call("cuMemAlloc_v2", Out("a"), 3 * MIB))
        yield
        for _ in range(retains):
            yield
            ok(call(end, 0))
        yield

    return script


for _end in ("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2"):
    PATHS[f"primary_context_{_end}"] = Path(primaries(_end, 2), ("cuDevicePrimaryCtxRetain", _end))
for _end in ("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"):
    PATHS[f"primary_context_{_end}"] = Path(primaries(_end, 1), (_end,))


@path("cuGreenCtxCreate", "cuGreenCtxDestroy")
def green_context(call: Calls) -> Iterator[None]:
    ok(call("cuDeviceGetDevResource", 0, Out("all"), 1))
    ok(call("cuDevResourceGenerateDesc", Out("part"), Out("all"), 1))
    ok(call("cuGreenCtxCreate", Out("green"), Var("part"), 0, 1))
    yield
    ok(call("cuGreenCtxDestroy", Var("green")))
    yield


@path("cuCtxSetLimit")
def stacks_and_heap(call: Calls) -> Iterator[None]:
    ok(call("cuCtxSetLimit", 0, 8192))
    yield
    ok(call("cuCtxSetLimit", 2, 64 * MIB))
    yield
    ok(call("cuCtxSetLimit", 1, 32 * MIB))
    yield
    for limit, size in ((0, 1024), (1, MIB), (2, 8 * MIB)):
        ok(call("cuCtxSetLimit", limit, size))
        yield


PTX = b".version 8.0\n.target sm_90\n" + b"// nothing\n" * 2000 + b"\0"
FATBIN = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 300_000) + b"\1" * 300_000


def cubin(zeroed: int = 5 * MIB) -> bytes:
    """An ELF file with a section of 100,000 bytes and one of `zeroed` that are not in the file."""
    sections = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64, 100_000, 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 8, 0, 0, 100_064, zeroed, 0, 0, 0, 0)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 100_064, 0, 64, 56, 0, 64, 2, 0)
    return header + b"\2" * 100_000 + sections


#: Variables of 64 MiB and of 6 floats; what is elsewhere, or an argument, takes nothing here.
DECLARING = b"""//
.version 8.0
.target sm_70 // .global .align 4 .b8 comment[1000000];
.extern .global .align 4 .b8 elsewhere[1000000];
.visible .global .align 4 .b8 table[67108864];
.global .align 8 .f32 pairs[3][2];
.visible .entry empty(.param .u64 .ptr .global .align 4 p)
{
ld.global.u32 %r1, [table];
}
\0"""


def fat_binary(*entries: tuple[int, int, bytes, int]) -> bytes:
    """Images of (1: PTX, 2: cubin; architecture; image; bytes unpacked, or 0: it is not packed)."""
    body = b""
    for kind, arch, image, unpacked in entries:
        packed = len(image) if unpacked else 0
        numbers = kind, 0x101, 64, len(image), packed, 0, 0, 0, arch, 0, 0, 0x11, 0, unpacked
        body += struct.pack("<HHIQIIHHIIIQQQ", *numbers) + image
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


#: For a GPU of compute capability 9.0.
MANY = fat_binary(
    (2, 80, cubin(3 * MIB), 0), (1, 90, DECLARING, 0), (2, 90, cubin(7 * MIB), 0),
    (2, 100, cubin(9 * MIB), 0),
)  # fmt: skip
LATER = fat_binary((2, 80, cubin(3 * MIB), 0), (1, 70, PTX, 0), (1, 75, DECLARING, 0))
PACKED = fat_binary((2, 80, cubin(3 * MIB), 0), (2, 90, b"\1" * 5000, 300_000))
NONE_SUITS = fat_binary((2, 80, cubin(3 * MIB), 0), (2, 100, cubin(9 * MIB), 0))


def modules(load: str, image: bytes, *after: int) -> Script:
    def script(call: Calls) -> Iterator[None]:
        ok(call(load, Out("m"), image, *after))
        yield
        ok(call("cuModuleUnload", Var("m")))
        yield

    return script


for _name, _load, _image, _after in (
    ("module_of_ptx", "cuModuleLoadData", PTX, ()),
    ("module_of_a_cubin", "cuModuleLoadDataEx", cubin(), (0, 0, 0)),
    ("module_of_a_fat_binary", "cuModuleLoadFatBinary", FATBIN, ()),
    ("module_with_variables", "cuModuleLoadData", DECLARING, ()),
    ("module_for_many_gpus", "cuModuleLoadData", MANY, ()),
    ("module_compiled_when_loaded", "cuModuleLoadData", LATER, ()),
    ("module_that_is_packed", "cuModuleLoadData", PACKED, ()),
    ("module_for_no_gpu_that_we_know", "cuModuleLoadData", NONE_SUITS, ()),
):
    PATHS[_name] = Path(modules(_load, _image, *_after), (_load, "cuModuleUnload"))


@contextmanager
def in_file(image: bytes) -> Iterator[str]:
    """A file with this image; its path as an argument of the client's."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(image)
        file.flush()
        yield f'"{file.name}'


@path("cuModuleLoad")
def module_of_a_file(call: Calls) -> Iterator[None]:
    for image in (cubin(), PTX[:-1]):
        with in_file(image) as text:
            ok(call("cuModuleLoad", Out("m"), text))
        yield
        ok(call("cuModuleUnload", Var("m")))
        yield


@path("cuLibraryLoadData", "cuLibraryUnload")
def library(call: Calls) -> Iterator[None]:
    ok(call("cuLibraryLoadData", Out("l"), PTX, 0, 0, 0, 0, 0, 0))
    yield
    ok(call("cuLibraryUnload", Var("l")))
    yield


@path("cuLibraryLoadFromFile")
def library_of_a_file(call: Calls) -> Iterator[None]:
    with in_file(FATBIN) as text:
        ok(call("cuLibraryLoadFromFile", Out("l"), text, 0, 0, 0, 0, 0, 0))
    yield
    ok(call("cuLibraryUnload", Var("l")))
    yield


def copies(ask: str) -> Script:
    def script(call: Calls) -> Iterator[None]:
        ok(call("cuLibraryLoadData", Out("l"), PTX, 0, 0, 0, 0, 0, 0))
        ok(call("cuLibraryGetKernel", Out("k"), Var("l"), '"empty'))
        ok(call("cuCtxCreate_v2", Out("own"), 0, 0))
        yield
        match ask:
            case "cuLibraryGetModule":
                ok(call(ask, Out("m"), Var("l")))
            case "cuLibraryGetGlobal":
                ok(call(ask, Out("g"), Out("n"), Var("l"), '"some_1000'))
            case _:
                ok(call(ask, Out("f"), Var("k")))
        yield
        ok(call("cuLibraryUnload", Var("l")))
        yield
        ok(call("cuCtxDestroy_v2", Var("own")))
        ok(call("cuCtxSetCurrent", Var("context")))
        yield

    return script


for _ask in ("cuLibraryGetModule", "cuLibraryGetGlobal", "cuKernelGetFunction"):
    PATHS[f"library_in_a_second_context_{_ask}"] = Path(copies(_ask), (_ask,))
