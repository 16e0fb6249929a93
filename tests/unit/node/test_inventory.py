"""The facts of GPUs where drivers know little; with a driver that knows all: tests/native."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alnair.node.inventory import GpuFacts, bus_id, read_inventory, with_mig_modes
from alnair.node.nvml import Nvml


class ApiError(Exception):
    """As `pynvml.NVMLError`."""

    value = 999


class Api:
    """A driver that tells no more than it must; `more` are its further answers by function."""

    NVMLError = ApiError
    NVML_NVLINK_MAX_LINKS = 6
    NVML_NVLINK_DEVICE_TYPE_SWITCH = 2
    NVML_TOPOLOGY_NODE = 40

    def __init__(self, gpus: int, **more: Any) -> None:
        self._gpus = gpus
        self._more = more

    def nvmlInit(self) -> None:  # noqa: N802 (NVML's names)
        pass

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "390.157"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self._gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "Tesla V100-SXM2-16GB"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=16 << 30)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def answer(*args: Any) -> Any:
            if name not in self._more:
                raise ApiError("not supported")
            return self._more[name](*args)

        return answer


def test_what_a_driver_does_not_know_is_absent(tmp_path: Path) -> None:
    nvml = Nvml.of(Api(2))
    found = read_inventory(nvml, tmp_path)
    name, mib = "Tesla V100-SXM2-16GB", 16384
    assert found.gpus == (
        GpuFacts(0, "GPU-0", name, mib, minor=0),
        GpuFacts(1, "GPU-1", name, mib, minor=1),
    )
    assert with_mig_modes(found, nvml) == found


def test_an_older_package_lacks_functions_and_constants(tmp_path: Path) -> None:
    class Old(Api):
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    nvml = Nvml.of(Old(1))
    (gpu,) = read_inventory(nvml, tmp_path).gpus
    assert (gpu.minor, gpu.pci, gpu.numa, gpu.mig, gpu.links) == (0, "", None, False, {})


def test_only_active_nvlinks_to_that_gpu_count(tmp_path: Path) -> None:
    """Of six links four are up: two lead to GPU 1, one to GPU 2, one to a device of no GPU."""
    buses = ["00000000:0A:00.0", "00000000:0B:00.0", "00000000:0C:00.0", "00000000:0D:00.0"]
    ends = [1, 1, 2, 3, 1, 2]

    def far_end(handle: int, link: int) -> Any:
        return SimpleNamespace(busId=buses[ends[link]])

    api = Api(
        3,
        nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId=buses[handle], pciDeviceId=1),
        nvmlDeviceGetNvLinkState=lambda handle, link: handle == 0 and link < 4,
        nvmlDeviceGetNvLinkRemoteDeviceType=lambda handle, link: 0,
        nvmlDeviceGetNvLinkRemotePciInfo=far_end,
        nvmlDeviceGetTopologyCommonAncestor=lambda one, two: 40,
    )
    first, second, _ = read_inventory(Nvml.of(api), tmp_path).gpus
    assert first.links == {1: "NV2", 2: "NV1"}
    assert second.links == {0: "NODE", 2: "NODE"}


@pytest.mark.parametrize(
    ("words", "numa"),
    [([1], 0), ([8, 0], 3), ([0, 2], 65), ([3], None), ([0], None)],
)
def test_the_numa_node_is_that_of_the_nearest_memory_if_it_is_one(
    tmp_path: Path, words: list[int], numa: int | None
) -> None:
    api = Api(1, nvmlDeviceGetMemoryAffinity=lambda handle, size, scope: words)
    (gpu,) = read_inventory(Nvml.of(api), tmp_path).gpus
    assert gpu.numa == numa


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("00000000:1A:00.0", "0000:1a:00.0"),
        (b"00000001:00:00.0", "0001:00:00.0"),
        ("00010000:3B:00.0", "10000:3b:00.0"),
        ("", ""),
    ],
)
def test_bus_ids_are_written_as_the_kernel_does(said: str | bytes, name: str) -> None:
    assert bus_id(said) == name
