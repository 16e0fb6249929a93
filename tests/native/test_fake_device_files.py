"""A process sees the fake GPUs whose device files it has, as in a container on a node."""

import json
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from native import build
from native.fake import Fake

CUDA = """
import ctypes, json
driver = ctypes.CDLL("libcuda.so.1")
result, count, found = driver.cuInit(0), ctypes.c_int(), []
if not result:
    driver.cuDeviceGetCount(ctypes.byref(count))
for ordinal in range(count.value):
    text = ctypes.create_string_buffer(16)
    driver.cuDeviceGetUuid_v2(text, ordinal)
    found.append(text.raw.hex())
print(json.dumps([result, found]))
"""
NVML = """
import json, pynvml, sys
pynvml.nvmlInit()
found = []
for index in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    again = pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(handle))
    assert pynvml.nvmlDeviceGetIndex(again) == index
    minor = pynvml.nvmlDeviceGetMinorNumber(handle)
    found.append([pynvml.nvmlDeviceGetUUID(handle).replace("GPU-", "").replace("-", ""), minor])
hidden = 0
for uuid in sys.argv[1:]:
    try:
        pynvml.nvmlDeviceGetHandleByUUID("GPU-" + uuid)
    except pynvml.NVMLError_NotFound:
        hidden += 1
print(json.dumps([found, hidden]))
"""
NO_DEVICE = 100


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """A folder in place of /dev, with the files of GPUs 1 and 3, and of tools."""
    for name in ("nvidiactl", "nvidia-uvm", "nvidia1", "nvidia3"):
        (tmp_path / name).touch()
    return tmp_path


def python(fake: Fake, text: str, *words: str, **more: str) -> Any:
    """What a Python program says that it sees."""
    environment = fake.environment(**more)
    environment["LD_LIBRARY_PATH"] = str(build.PLAIN)
    return json.loads(build.checked(sys.executable, "-c", text, *words, environment=environment))


def names(fake: Fake, *gpus: int) -> list[str]:
    return [fake.uuid(gpu).hex for gpu in gpus]


def test_gpus_are_those_with_a_device_file_counted_from_0(dev: Path) -> None:
    with Fake(gpus=4) as fake:
        assert python(fake, CUDA, FAKEGPU_DEV=str(dev)) == [0, names(fake, 1, 3)]
        all_of_them = [str(uuid.UUID(name)) for name in names(fake, 0, 1, 2, 3)]
        found, hidden = python(fake, NVML, *all_of_them, FAKEGPU_DEV=str(dev))
        assert found == [[fake.uuid(1).hex, 1], [fake.uuid(3).hex, 3]]
        assert hidden == 2


def test_a_variable_chooses_among_these(dev: Path) -> None:
    with Fake(gpus=4) as fake:
        for chosen, seen in (
            ("1", [3]),
            ("1,0", [3, 1]),
            ("0,2,1", [1]),
            (f"GPU-{fake.uuid(3)}", [3]),
        ):
            given = {"FAKEGPU_DEV": str(dev), "CUDA_VISIBLE_DEVICES": chosen}
            assert python(fake, CUDA, **given) == [0, names(fake, *seen)]
        for chosen in ("2", f"GPU-{fake.uuid(0)}"):
            given = {"FAKEGPU_DEV": str(dev), "CUDA_VISIBLE_DEVICES": chosen}
            assert python(fake, CUDA, **given) == [NO_DEVICE, []]


def test_a_driver_without_gpu_files_shows_none_and_without_a_driver_file_all(
    dev: Path, tmp_path: Path
) -> None:
    with Fake(gpus=4) as fake:
        for name in ("nvidia1", "nvidia3"):
            (dev / name).unlink()
        assert python(fake, CUDA, FAKEGPU_DEV=str(dev)) == [NO_DEVICE, []]
        assert python(fake, NVML, FAKEGPU_DEV=str(dev)) == [[], 0]
        (dev / "nvidiactl").unlink()
        assert python(fake, CUDA, FAKEGPU_DEV=str(dev)) == [0, names(fake, 0, 1, 2, 3)]


def test_the_mounted_state_goes_by_the_files_of_dev(dev: Path) -> None:
    with Fake(gpus=4) as fake:
        environment = fake.environment()
        del environment["FAKEGPU_STATE"]
        environment["LD_LIBRARY_PATH"] = str(build.PLAIN)
        script = (
            "mount -t tmpfs none /run && mkdir /run/fakegpu && touch /run/fakegpu/state"
            f" && mount --bind {fake.state} /run/fakegpu/state"
            ' && "$0" -c "$1" && mount --bind "$2" /dev && exec "$0" -c "$1"'
        )
        command = ["unshare", "-m", "sh", "-c", script, sys.executable, CUDA, str(dev)]
        done = build.run(*command, environment=environment)
        if "unshare" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"mounts cannot be made here: {done.stderr}")
        before, after = map(json.loads, done.stdout.splitlines())
        if not Path("/dev/nvidiactl").exists():
            assert before == [0, names(fake, 0, 1, 2, 3)]
        assert after == [0, names(fake, 1, 3)]
