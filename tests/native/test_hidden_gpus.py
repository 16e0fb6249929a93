"""GPUs that a container was not given are hidden from CUDA and from NVML, whatever it asks by."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from native import build
from native.calls import MIB, OUT_OF_MEMORY, SUCCESS, Calls, Out, Var
from native.container import Container
from native.fake import Fake

NO_DEVICE, INVALID_DEVICE, NOT_PERMITTED = 100, 101, 800
LIMIT, CONTEXT = 2048 * MIB, 522 * MIB


@contextmanager
def tenant(*given: int, gpus: int = 3) -> Iterator[tuple[Fake, Container, dict[str, str]]]:
    """A machine, a container with slices of some of its GPUs, in this order, and its surroundings.

    The fake has no device files here: but for the library, every GPU of it would be seen.
    """
    with (
        Fake(gpus=gpus) as fake,
        Container(*map(fake.uuid, given), memory_limit=LIMIT, context_bytes=CONTEXT) as container,
    ):
        yield fake, container, {**fake.environment(), **container.environment()}


def seen(call: Calls) -> list[str]:
    """The UUIDs of the GPUs that CUDA counts."""
    assert call("cuDeviceGetCount", Out("n")) == SUCCESS
    found = []
    for gpu in range(call.get("n")):
        assert call("cuDeviceGetUuid_v2", Out("uuid"), gpu) == SUCCESS
        found.append(call.ask("hex", "uuid", 16))
    return found


def test_the_slice_of_gpu_1_is_device_0_and_there_is_no_other() -> None:
    with tenant(1) as (fake, container, environment), Calls(environment) as call:
        assert seen(call) == [fake.uuid(1).hex]
        assert call("cuDeviceGet", Out("d"), 0) == SUCCESS
        assert call("cuDeviceGet", Out("d"), 1) == INVALID_DEVICE
        for gpu, result in enumerate((INVALID_DEVICE, SUCCESS, INVALID_DEVICE)):
            bus = f'"0000:{0x18 + 8 * gpu:02X}:00.0'
            assert call("cuDeviceGetByPCIBusId", Out("d"), bus) == result
        assert call("cuMemAlloc_v2", Out("a"), 100 * MIB) == SUCCESS
        assert call("cuMemAlloc_v2", Out("b"), LIMIT) == OUT_OF_MEMORY
        used = [fake.used(gpu=gpu) for gpu in range(3)]
        assert used == [0, container.total("held"), 0] == [0, CONTEXT + 100 * MIB, 0]


def test_ordinals_count_over_what_was_given_in_its_order() -> None:
    with tenant(2, 0) as (fake, container, environment), Calls(environment, device=1) as call:
        assert seen(call) == [fake.uuid(2).hex, fake.uuid(0).hex]
        assert call("cuMemAlloc_v2", Out("a"), 100 * MIB) == SUCCESS
        assert fake.used(gpu=0) == container.total("held", 1) == CONTEXT + 100 * MIB
        assert call("cuDeviceCanAccessPeer", Out("can"), 1, 0) == SUCCESS
        assert call("cuDeviceCanAccessPeer", Out("can"), 1, 2) == INVALID_DEVICE


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ("0,1", [2, 0]),
        ("1,0", [0, 2]),
        (" 1, 0", [0, 2]),
        ("1", [0]),
        ("1,2,0", [0]),  # what follows a number that is none is not read
        ("0,0", []),  # the driver's own answer to a GPU that is named twice
        ("", []),
        ("-1", []),
        ("2", []),
        ("none", []),
        ("GPU-", []),
        ("{0}", [0]),
        ("{2},{0}", [2, 0]),
        ("{0},{1},{2}", [0]),
        ("{1}", []),
        ("{2:.9}", [2]),
        ("MIG-{1}", []),
    ],
)
def test_a_program_chooses_among_what_was_given(own: str, shown: list[int]) -> None:
    with tenant(2, 0) as (fake, _, environment):
        text = own.format(*(f"GPU-{fake.uuid(gpu)}" for gpu in range(3)))
        chosen = environment | {"CUDA_VISIBLE_DEVICES": text}
        with Calls(chosen, device=None) as call:
            assert call("cuInit", 0) == (SUCCESS if shown else NO_DEVICE)
            if shown:
                assert seen(call) == [fake.uuid(gpu).hex for gpu in shown]


def test_a_driver_that_shows_more_is_refused() -> None:
    """As one does whose cuInit was called past the library."""
    with tenant(1) as (_, _, environment), Calls(environment, device=None) as call:
        call.ask("bypass", "cuInit")
        assert call("cuInit", 0) == SUCCESS
        assert call("cuCtxCreate_v2", Out("context"), 0, 0) == SUCCESS  # the first, as it learns
        assert call("cuMemAlloc_v2", Out("a"), MIB) == NOT_PERMITTED
        assert "GPU 2 is visible in it but was not given to it" in call.errors()


@pytest.mark.skipif(
    "thread" in build.SANITIZE or "address" in build.SANITIZE,
    reason="the program is a race: its threads setenv, and realloc moves at each call there",
)
@pytest.mark.parametrize("own", [None, "1", "0"])
def test_a_program_finds_its_environment_as_it_left_it(own: str | None) -> None:
    """Also while its threads set and remove variables, which moves the environment."""
    program = build.client("surroundings", "-l:libcuda.so.1")
    with tenant(2, 0) as (_, _, environment):
        mine = {} if own is None else {"CUDA_VISIBLE_DEVICES": own}
        said = build.checked(program, environment=environment | mine)
    assert said == f"0 {own}\n"


NVML = """
import ctypes, json, sys, pynvml as n
n.nvmlInit()
def tried(call, *arguments):
    try:
        found = call(*arguments)
    except n.NVMLError as error:
        return error.value
    return found if isinstance(found, int) else n.nvmlDeviceGetUUID(found)
nodes, buses = sys.argv[1].split(), sys.argv[2].split()
count = n.nvmlDeviceGetCount()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
old = [ctypes.c_uint(9), ctypes.c_void_p()]
assert n.nvmlLib.nvmlDeviceGetCount(ctypes.byref(old[0])) == 0
assert n.nvmlLib.nvmlDeviceGetHandleByIndex(0, ctypes.byref(old[1])) == 0
print(json.dumps({
    "uuids": [n.nvmlDeviceGetUUID(each) for each in handles],
    "indices": [n.nvmlDeviceGetIndex(each) for each in handles],
    "beyond": tried(n.nvmlDeviceGetHandleByIndex, count),
    "by uuid": [tried(n.nvmlDeviceGetHandleByUUID, each) for each in nodes],
    "by bus": [tried(n.nvmlDeviceGetHandleByPciBusId, each) for each in buses],
    "near": [[n.nvmlDeviceGetUUID(near) for near in n.nvmlDeviceGetTopologyNearestGpus(each, level)]
        for each in handles for level in (n.NVML_TOPOLOGY_HOSTBRIDGE, n.NVML_TOPOLOGY_SYSTEM)],
    "total": [n.nvmlDeviceGetMemoryInfo(each).total for each in handles],
    "old": [old[0].value, old[1].value == ctypes.cast(handles[0], ctypes.c_void_p).value],
}))
"""


@pytest.mark.parametrize("given", [(1,), (2, 0), ()])
def test_nvml_shows_what_was_given_and_has_no_handle_of_anything_else(
    given: tuple[int, ...],
) -> None:
    not_found, invalid = 6, 2
    with tenant(*given, gpus=4) as (fake, _, environment):
        names = [f"GPU-{fake.uuid(gpu)}" for gpu in range(4)]
        buses = [f"0000:{0x18 + 8 * gpu:02X}:00.0" for gpu in range(4)]
        if not given:  # no limits page: all of them
            del environment["ALNAIR_VGPU_DIR"]
        arguments = ("-c", NVML, " ".join(names), " ".join(buses))
        found = json.loads(build.checked(sys.executable, *arguments, environment=environment))
    shown = [names[gpu] for gpu in given or range(4)]
    assert found["uuids"] == shown
    assert found["indices"] == list(range(len(shown)))
    assert found["beyond"] == invalid
    expected = [name if name in shown else not_found for name in names]
    assert found["by uuid"] == found["by bus"] == expected
    assert {near for each in found["near"] for near in each} <= set(shown)
    assert sum(map(len, found["near"])) == len(shown) * (len(shown) - 1)
    assert all((total == LIMIT) == bool(given) for total in found["total"])
    assert found["old"] == [len(shown), True]


def test_nvml_counts_a_gpu_that_is_lost() -> None:
    """Or nvidia-smi would show another one in its place."""
    lost = 15
    code = (
        "import pynvml as n\nn.nvmlInit()\nprint(n.nvmlDeviceGetCount())\n"
        "try:\n n.nvmlDeviceGetHandleByIndex(0)\nexcept n.NVMLError as e:\n print(e.value)"
    )
    with tenant(1) as (fake, _, environment):
        fake.fault("lost=1")
        said = build.checked(sys.executable, "-c", code, environment=environment)
    assert said.split() == ["1", str(lost)]


def test_the_context_of_each_is_charged_where_it_is() -> None:
    with tenant(2, 0) as (fake, container, environment), Calls(environment) as call:
        assert call("cuDevicePrimaryCtxRetain", Out("other"), 1) == SUCCESS
        assert call("cuCtxSetCurrent", Var("other")) == SUCCESS
        assert call("cuMemAlloc_v2", Out("a"), 6 * MIB) == SUCCESS
        held = [container.total("held", row) for row in range(2)]
        assert held == [fake.used(gpu=2), fake.used(gpu=0)] == [CONTEXT, CONTEXT + 6 * MIB]
