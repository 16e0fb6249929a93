"""What the real nvidia-ml-py says of the fake driver's GPUs, as the agent understands it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from alnair.node.inventory import GpuFacts, Inventory, read_inventory, with_mig_modes
from alnair.node.nvml import Nvml
from native.fake import Fake
from native.test_nvml import using


@contextmanager
def opened(fake: Fake) -> Iterator[Nvml]:
    with using(fake) as api:
        nvml = Nvml.of(api)
        try:
            yield nvml
        finally:
            nvml.close()


def inventory(model: str, gpus: int, nowhere: Path) -> Inventory:
    with Fake(model, gpus=gpus) as fake, opened(fake) as nvml:
        return read_inventory(nvml, nowhere)


def test_a_server_has_two_numa_nodes_and_nvlinks_through_switches(tmp_path: Path) -> None:
    found = inventory("h100", 4, tmp_path)
    assert [gpu.numa for gpu in found.gpus] == [0, 0, 1, 1]
    assert [gpu.links for gpu in found.gpus] == [
        {other: "NV18" for other in range(4) if other != index} for index in range(4)
    ]
    first = found.gpus[0]
    assert (first.model, first.memory_mib, first.mig) == ("NVIDIA H100 80GB HBM3", 81559, False)
    assert [gpu.minor for gpu in found.gpus] == [0, 1, 2, 3]
    assert len({gpu.pci for gpu in found.gpus}) == 4
    assert first.pci.startswith("0000:")
    assert found.driver.startswith("615.")


def test_nvlinks_from_gpu_to_gpu_are_counted_pair_by_pair(tmp_path: Path) -> None:
    found = inventory("v100", 4, tmp_path)
    assert [gpu.links for gpu in found.gpus] == [
        {other: "NV2" for other in range(4) if other != index} for index in range(4)
    ]


def test_without_nvlink_the_nearest_bridge_is_the_link(tmp_path: Path) -> None:
    found = inventory("t4", 4, tmp_path)
    assert [gpu.links for gpu in found.gpus] == [
        {1: "PHB", 2: "SYS", 3: "SYS"},
        {0: "PHB", 2: "SYS", 3: "SYS"},
        {0: "SYS", 1: "SYS", 3: "PHB"},
        {0: "SYS", 1: "SYS", 2: "PHB"},
    ]


def test_a_lone_gpu_has_no_links(tmp_path: Path) -> None:
    (gpu,) = inventory("k80", 1, tmp_path).gpus
    assert (gpu.links, gpu.numa, gpu.mig) == ({}, 0, False)


@pytest.mark.parametrize(("said", "numa"), [("1\n", 1), ("-1\n", None)])
def test_the_kernel_is_asked_first_for_the_numa_node(
    tmp_path: Path, said: str, numa: int | None
) -> None:
    with Fake("h100") as fake, opened(fake) as nvml:
        (gpu,) = read_inventory(nvml, tmp_path).gpus
        device = tmp_path / "bus/pci/devices" / gpu.pci
        device.mkdir(parents=True)
        for name, text in (("vendor", "0x10de\n"), ("device", "0x2330\n"), ("numa_node", said)):
            (device / name).write_text(text)
        (gpu,) = read_inventory(nvml, tmp_path).gpus
        assert gpu.numa == numa
        (device / "device").write_text("0x1234\n")  # something else has that place
        (gpu,) = read_inventory(nvml, tmp_path).gpus
        assert gpu.numa == 0


def test_mig_mode_is_seen_when_it_changes(tmp_path: Path) -> None:
    with Fake("h100", gpus=2) as fake, opened(fake) as nvml:
        before = read_inventory(nvml, tmp_path)
        assert len(before.sliceable) == 2
        fake.fault("mig=1")
        now = with_mig_modes(before, nvml)
        assert [gpu.mig for gpu in now.gpus] == [True, True]
        assert now.sliceable == ()
        fake.fault("mig=0")
        assert with_mig_modes(now, nvml) == before


def test_a_lost_gpu_keeps_the_mode_that_it_had(tmp_path: Path) -> None:
    with Fake("h100", gpus=2) as fake, opened(fake) as nvml:
        fake.fault("mig=1")
        before = read_inventory(nvml, tmp_path)
        fake.xid(79)
        now: tuple[GpuFacts, ...] = with_mig_modes(before, nvml).gpus
        assert [gpu.mig for gpu in now] == [True, True]
