"""MIG on the fake GPU: what NVML and CUDA say of instances, and that they hold their memory."""

import errno
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from alnair.node.nvml import Nvml
from native import build
from native.fake import Fake
from native.test_nvml import using

CUDA = """
import ctypes as c, json, os, sys, uuid
cuda = c.CDLL("libcuda.so.1")
result, count, found = cuda.cuInit(0), c.c_int(), []
if not result:
    cuda.cuDeviceGetCount(c.byref(count))
for ordinal in range(count.value):
    name, own, gpu = (c.create_string_buffer(size) for size in (96, 16, 16))
    total = c.c_size_t()
    cuda.cuDeviceGetName(name, 96, ordinal)
    cuda.cuDeviceGetUuid_v2(own, ordinal)
    cuda.cuDeviceGetUuid(gpu, ordinal)
    cuda.cuDeviceTotalMem_v2(c.byref(total), ordinal)
    ids = [str(uuid.UUID(bytes=text.raw)) for text in (own, gpu)]
    found.append([name.value.decode(), *ids, total.value >> 20])
print(json.dumps([result, found]), flush=True)
"""
HOLD = (
    CUDA
    + """
context, address = c.c_void_p(), c.c_uint64()
free, total = c.c_size_t(), c.c_size_t()
assert cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
said = cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(int(sys.argv[1]) << 20))
assert cuda.cuMemGetInfo_v2(c.byref(free), c.byref(total)) == 0
print(json.dumps([said, free.value >> 20, total.value >> 20]), flush=True)
sys.stdin.read()
"""
)
NO_DEVICE, OUT_OF_MEMORY = 100, 2
NAME = "NVIDIA H100 80GB HBM3"
#: An eighth of the GPU's memory.
EIGHTH = 10134


def lines(fake: Fake, program: str, *words: object, **more: str) -> list[Any]:
    """What a program says."""
    environment = fake.environment(**more) | {"LD_LIBRARY_PATH": str(build.PLAIN)}
    said = build.checked(sys.executable, "-c", program, *map(str, words), environment=environment)
    return [json.loads(line) for line in said.splitlines()]


def migs(api: ModuleType, gpu: int = 0) -> list[Any]:
    """Handles of a GPU's instances."""
    parent, found = api.nvmlDeviceGetHandleByIndex(gpu), []
    for index in range(api.nvmlDeviceGetMaxMigDeviceCount(parent)):
        try:
            found.append(api.nvmlDeviceGetMigDeviceHandleByIndex(parent, index))
        except api.NVMLError_NotFound:
            continue
    return found


def test_nvml_tells_of_instances_as_of_devices_with_ids_and_sizes() -> None:
    with Fake("h100", gpus=2) as fake, using(fake) as api:
        plain = api.nvmlDeviceGetHandleByIndex(1)
        assert api.nvmlDeviceGetMaxMigDeviceCount(plain) == 0
        fake.mig("1g.10gb,1g.10gb+me,3g.40gb")
        assert api.nvmlDeviceGetMigMode(plain) == [0, 0]
        with pytest.raises(api.NVMLError_NotSupported):
            api.nvmlDeviceGetMigDeviceHandleByIndex(plain, 0)
        with pytest.raises(api.NVMLError_NotSupported):
            api.nvmlDeviceGetGpuInstanceId(plain)
        parent, found = api.nvmlDeviceGetHandleByIndex(0), migs(api)
        assert api.nvmlDeviceGetMigMode(parent) == [1, 1]
        assert [api.nvmlDeviceGetName(one) for one in found] == [
            f"{NAME} MIG 1g.10gb",
            f"{NAME} MIG 1g.10gb+me",
            f"{NAME} MIG 3g.40gb",
        ]
        assert [api.nvmlDeviceGetGpuInstanceId(one) for one in found] == [1, 2, 3]
        assert [api.nvmlDeviceGetComputeInstanceId(one) for one in found] == [0, 0, 0]
        assert [api.nvmlDeviceGetIndex(one) for one in found] == [0, 1, 2]
        sizes = [api.nvmlDeviceGetAttributes(one) for one in found]
        assert [
            (one.gpuInstanceSliceCount, one.computeInstanceSliceCount, one.memorySizeMB)
            for one in sizes
        ] == [(1, 1, EIGHTH), (1, 1, EIGHTH), (3, 3, 4 * EIGHTH)]
        for one in found:
            uuid = api.nvmlDeviceGetUUID(one)
            assert uuid.startswith("MIG-")
            again = api.nvmlDeviceGetHandleByUUID(uuid)
            assert api.nvmlDeviceGetUUID(again) == uuid
            assert api.nvmlDeviceIsMigDeviceHandle(one).value == 1
            of = api.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(one)
            assert api.nvmlDeviceGetUUID(of) == f"GPU-{fake.uuid()}"
            with pytest.raises(api.NVMLError_NotSupported):
                api.nvmlDeviceGetMinorNumber(one)
        assert api.nvmlDeviceIsMigDeviceHandle(parent).value == 0
        fake.mig("1g.10gb")
        with pytest.raises(api.NVMLError_InvalidArgument):
            api.nvmlDeviceGetUUID(found[2])


def test_use_is_not_measured_in_mig_mode() -> None:
    with Fake("h100") as fake, using(fake) as api:
        fake.mig("7g.80gb")
        gpu = api.nvmlDeviceGetHandleByIndex(0)
        with pytest.raises(api.NVMLError_NotSupported):
            api.nvmlDeviceGetUtilizationRates(gpu)
        with pytest.raises(api.NVMLError_NotSupported):
            api.nvmlDeviceGetProcessUtilization(gpu, 0)
        assert api.nvmlDeviceGetMemoryInfo(gpu).total >> 20 == 81559


def test_a_process_holds_its_instances_memory_and_no_more() -> None:
    with Fake("h100") as fake, using(fake) as api:
        fake.mig("1g.10gb,2g.20gb")
        one, two = migs(api)
        named = {"CUDA_VISIBLE_DEVICES": api.nvmlDeviceGetUUID(one)}
        environment = fake.environment(**named) | {"LD_LIBRARY_PATH": str(build.PLAIN)}
        _, (said, free, total) = lines(fake, HOLD, EIGHTH, **named)
        assert (said, total) == (OUT_OF_MEMORY, EIGHTH)
        with build.start(sys.executable, "-c", HOLD, "1000", environment=environment) as held:
            assert held.stdout is not None
            device, (said, less, _) = (json.loads(held.stdout.readline()) for _ in range(2))
            assert (said, free - less) == (0, 1000)
            own = api.nvmlDeviceGetUUID(one).removeprefix("MIG-")
            assert device == [0, [[f"{NAME} MIG 1g.10gb", own, str(fake.uuid()), EIGHTH]]]
            assert api.nvmlDeviceGetMemoryInfo(one).used >> 20 == EIGHTH - less
            assert api.nvmlDeviceGetMemoryInfo(two).used == 0
            usage = Nvml.of(api).read(f"GPU-{fake.uuid()}").usage
            assert usage.util is None
            assert {uuid: used >> 20 for uuid, used in usage.mig.items()} == {
                api.nvmlDeviceGetUUID(one): EIGHTH - less,
                api.nvmlDeviceGetUUID(two): 0,
            }
            (process,) = api.nvmlDeviceGetComputeRunningProcesses(one)
            assert (process.pid, process.gpuInstanceId) == (held.pid, 1)
            assert api.nvmlDeviceGetComputeRunningProcesses(two) == []
            parent = api.nvmlDeviceGetHandleByIndex(0)
            (process,) = api.nvmlDeviceGetComputeRunningProcesses(parent)
            assert process.pid == held.pid
            with pytest.raises(OSError, match="refused") as refused:
                fake.mig("2g.20gb")
            assert refused.value.errno == errno.EBUSY
            fake.mig("1g.10gb")
            held.communicate()


@pytest.mark.parametrize("layout", ["1g", "8g.80gb", "4g.40gb,4g.40gb", "1g.1gb", "3c.2g.20gb"])
def test_what_no_gpu_can_be_cut_up_into_is_refused(layout: str) -> None:
    with Fake("h100") as fake, pytest.raises(OSError, match="refused"):
        fake.mig(layout)


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """A folder in place of /dev, of a container with GPU 0 and no instance of it."""
    (tmp_path / "nvidia-caps").mkdir()
    for name in ("nvidiactl", "nvidia0"):
        (tmp_path / name).touch()
    return tmp_path


def give(fake: Fake, dev: Path, instance: str) -> None:
    """Put the files of an instance, such as gi2/ci0, into a container's /dev."""
    gi, ci = instance.split("/")
    for folder in (gi, f"{gi}/{ci}"):
        text = (fake.capabilities / "gpu0" / "mig" / folder / "access").read_text()
        minor = text.splitlines()[0].removeprefix("DeviceFileMinor: ")
        (dev / "nvidia-caps" / f"nvidia-cap{minor}").touch()


def test_a_container_sees_the_instance_whose_files_it_has(dev: Path) -> None:
    with Fake("h100", gpus=2) as fake, using(fake) as api:
        fake.mig("1g.10gb,1g.10gb,1c.2g.20gb,1c.2g.20gb")
        uuids = [api.nvmlDeviceGetUUID(one) for one in migs(api)]
        given = {"FAKEGPU_DEV": str(dev)}
        assert lines(fake, CUDA, **given) == [[NO_DEVICE, []]]
        give(fake, dev, "gi2/ci0")
        for chosen in ({}, {"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": uuids[1]}):
            ((result, found),) = lines(fake, CUDA, **given, **chosen)
            assert result == 0
            assert [f"MIG-{one[1]}" for one in found] == [uuids[1]]
        for chosen in ("1", uuids[0], f"GPU-{fake.uuid()}"):
            given["CUDA_VISIBLE_DEVICES"] = chosen
            assert lines(fake, CUDA, **given) == [[NO_DEVICE, []]]
        del given["CUDA_VISIBLE_DEVICES"]
        api.nvmlShutdown()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FAKEGPU_DEV", str(dev))
            api.nvmlInit()
            assert [api.nvmlDeviceGetUUID(one) for one in migs(api)] == [uuids[1]]


def test_two_compute_instances_of_one_gpu_instance_are_two_devices(dev: Path) -> None:
    with Fake("h100") as fake:
        fake.mig("1c.2g.20gb,1c.2g.20gb")
        give(fake, dev, "gi1/ci1")
        ((_, ((name, *_, total),)),) = lines(fake, CUDA, FAKEGPU_DEV=str(dev))
        assert (name, total) == (f"{NAME} MIG 1c.2g.20gb", 2 * EIGHTH)


def test_beside_an_instance_cuda_shows_no_whole_gpu_but_one_that_is_named() -> None:
    with Fake("h100", gpus=2) as fake:
        fake.mig("1g.10gb")
        ((_, found),) = lines(fake, CUDA)
        assert [one[0] for one in found] == [f"{NAME} MIG 1g.10gb"]
        ((_, found),) = lines(fake, CUDA, CUDA_VISIBLE_DEVICES=f"GPU-{fake.uuid(1)}")
        assert [one[0] for one in found] == [NAME]


def test_the_driver_tells_the_numbers_of_capability_files() -> None:
    with Fake("h100", gpus=2) as fake:
        fake.mig("1g.10gb", gpu=1)
        place = fake.capabilities / "gpu1" / "mig" / "gi1"
        assert (place / "access").read_text().startswith("DeviceFileMinor: 147\n")
        assert (place / "ci0" / "access").read_text().startswith("DeviceFileMinor: 148\n")
        fake.mig(None, gpu=1)
        assert not place.exists()
