"""Ways past the account of device memory, and programs that it must not harm."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from native import build, context_paths, graph_paths, vmm_paths
from native.calls import MIB, OUT_OF_MEMORY, SUCCESS, Calls, Out, Var
from native.container import Container
from native.fake import Fake
from native.memory_paths import PATHS

assert context_paths
assert graph_paths
assert vmm_paths  # importing them adds their paths

CONTEXT = 522 * MIB
LIMIT = 2048 * MIB
#: CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_FILE_NOT_FOUND: a driver's words for a file it cannot load.
UNREADABLE = {200, 301}


@contextmanager
def tenant(gpus: int = 1) -> Iterator[tuple[Fake, Container, dict[str, str]]]:
    """A container with a limit on each GPU, and the environment of its processes."""
    with (
        Fake(gpus=gpus) as fake,
        Container(
            *map(fake.uuid, range(gpus)), memory_limit=LIMIT, context_bytes=CONTEXT
        ) as container,
    ):
        for gpu in range(gpus):
            fake.watch(LIMIT, gpu=gpu)
        yield fake, container, {**fake.environment(), **container.environment()}


def test_a_default_pool_is_charged_to_its_own_gpu_not_to_the_streams() -> None:
    with tenant(gpus=2) as (fake, container, environment), Calls(environment) as call:
        assert call("cuDevicePrimaryCtxRetain", Out("other"), 1) == SUCCESS
        assert call("cuDeviceGetDefaultMemPool", Out("pool"), 1) == SUCCESS
        container.change(0, memory_limit=16 * LIMIT)
        given = [
            call("cuMemAllocFromPoolAsync", Out(f"p{i}"), 512 * MIB, Var("pool"), 0)
            for i in range(4)
        ]
        assert given == [SUCCESS, SUCCESS, OUT_OF_MEMORY, OUT_OF_MEMORY]
        assert fake.over(gpu=1) == (0, 0)
        for gpu in range(2):
            assert container.total("held", gpu) == fake.used("a", gpu)


@pytest.mark.parametrize("name", [name for name, path in PATHS.items() if path.gpus == 1])
def test_a_program_that_hides_the_first_gpu_is_charged_on_the_other(name: str) -> None:
    with tenant(gpus=2) as (fake, container, environment):
        for gpu in range(2):
            container.change(gpu, memory_limit=4 * LIMIT)
        primary = "primary_context" not in name
        hidden = environment | {"CUDA_VISIBLE_DEVICES": "1"}
        with Calls(hidden, device=0 if primary else None) as call:
            if not primary:
                call("cuInit", 0)
            for _ in PATHS[name].script(call):
                assert container.total("held", 1) == fake.used("a", 1)
                assert container.total("held", 0) == fake.used("a", 0) == 0


def test_a_limit_above_the_gpu_makes_no_larger_gpu() -> None:
    with tenant() as (fake, container, environment), Calls(environment) as call:
        container.change(memory_limit=2 * fake.total())
        assert call("cuMemGetInfo_v2", Out("free"), Out("total")) == SUCCESS
        assert call("cuDeviceTotalMem_v2", Out("bytes"), 0) == SUCCESS
        assert call.get("total") == call.get("bytes") == fake.total()
        assert call.get("free") == fake.total() - CONTEXT


def test_memory_that_is_mapped_while_it_is_released_stays_charged() -> None:
    with tenant() as (fake, container, environment):
        container.change(memory_limit=CONTEXT + 2 * MIB)
        fake.watch(CONTEXT + 2 * MIB)
        build.checked(build.client("vmm_race", "-l:libcuda.so.1"), environment=environment)
        assert fake.over() == (0, 0)


def test_threads_that_bind_and_export_memory_stay_within_the_limit_and_leak_nothing() -> None:
    program = build.client("bind_race", "-l:libcuda.so.1")
    with tenant() as (fake, container, environment):
        container.change(memory_limit=CONTEXT + 4 * MIB)
        fake.watch(CONTEXT + 4 * MIB)
        with build.start(program, environment=environment) as process:
            assert process.stdout
            assert int(process.stdout.readline()) > 100, process.communicate()[1]
            assert container.total("held") == fake.used("a") == CONTEXT
            process.communicate("\n")
        assert fake.over() == (0, 0)


def elf(**fields: tuple[int, bytes]) -> bytes:
    """The head of an ELF file, with these bytes at these places."""
    head = bytearray(b"\x7fELF\x02\x01\x01".ljust(64, b"\0"))
    for at, data in fields.values():
        head[at : at + len(data)] = data
    return bytes(head)


CUT = {
    "sections far away": elf(
        at=(0x28, struct.pack("<Q", 1 << 40)), count=(0x3A, struct.pack("<HH", 64, 5))
    ),
    "sections missing": elf(
        at=(0x28, struct.pack("<Q", 60)), count=(0x3A, struct.pack("<HH", 64, 50000))
    ),
    "sections that wrap": elf(
        at=(0x28, struct.pack("<Q", (1 << 64) - 64)), count=(0x3A, struct.pack("<HH", 64, 5))
    ),
    "half a head": elf()[:20],
    "an address of another process": struct.pack("<IIQQ", 0x466243B1, 1, 0xDEADBEEF000, 0),
}


@pytest.mark.parametrize("name", CUT)
def test_a_damaged_module_file_is_the_drivers_error_and_no_crash(name: str, tmp_path: Path) -> None:
    path = tmp_path / "damaged.cubin"
    path.write_bytes(CUT[name])
    with tenant() as (fake, container, environment), Calls(environment) as call:
        assert call("cuModuleLoad", Out("module"), f'"{path}') in UNREADABLE
        assert container.total("held") == fake.used() == CONTEXT


def test_what_is_not_loaded_of_modules_is_free_as_long_as_they_are_there() -> None:
    """The driver loads a tenth; the server has seen that, and says so in the limits page."""
    lazy = 57 * MIB  # of 64
    with (
        Fake(loaded=10) as fake,
        Container(fake.uuid(), memory_limit=LIMIT, context_bytes=CONTEXT) as container,
        Calls({**fake.environment(), **container.environment()}) as call,
    ):
        fake.watch(LIMIT)
        free = LIMIT - CONTEXT
        assert call("cuModuleLoadData", Out("m"), context_paths.DECLARING) == SUCCESS
        assert call("cuMemAlloc_v2", Out("a"), free - 50 * MIB) == OUT_OF_MEMORY
        container.change(memory_credit=lazy)
        assert call("cuMemAlloc_v2", Out("a"), free - 20 * MIB) == SUCCESS
        assert call("cuMemAlloc_v2", Out("b"), 20 * MIB) == OUT_OF_MEMORY
        assert call("cuModuleUnload", Var("m")) == SUCCESS
        assert call("cuMemAlloc_v2", Out("b"), 22 * MIB) == OUT_OF_MEMORY
        assert call("cuMemAlloc_v2", Out("b"), 20 * MIB) == SUCCESS
        container.change(memory_credit=1 << 40)
        assert call("cuMemAlloc_v2", Out("c"), 2 * MIB) == OUT_OF_MEMORY
        assert fake.over() == (0, 0)
        assert sum(slot.loaded[0] for slot in container.slots()) == 0


def test_modules_that_go_with_their_context_are_counted_no_more() -> None:
    image = b".version 8.0\n" + b"x" * 5000 + b"\0"
    with tenant() as (_, container, environment), Calls(environment) as call:
        assert call("cuCtxCreate_v2", Out("own"), 0, 0) == SUCCESS
        assert call("cuModuleLoadData", Out("m"), image) == SUCCESS
        assert call("cuLibraryLoadData", Out("l"), image, 0, 0, 0, 0, 0, 0) == SUCCESS
        loaded = [slot.loaded[0] for slot in container.slots()]
        assert loaded == [2 * 8192]
        assert call("cuCtxDestroy_v2", Var("own")) == SUCCESS
        assert [slot.loaded[0] for slot in container.slots()] == [0]
