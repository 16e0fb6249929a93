"""What the real nvidia-ml-py says of the fake driver's GPUs, as the agent understands it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from alnair.node.inventory import Inventory, read_inventory, with_mig_modes
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


def test_mig_mode_and_instances_are_seen_when_they_change(tmp_path: Path) -> None:
    with Fake("h100", gpus=2) as fake, opened(fake) as nvml:
        before = read_inventory(nvml, tmp_path)
        assert len(before.sliceable) == 2
        assert [gpu.mig_capable for gpu in before.gpus] == [True, True]
        fake.mig("", gpu=1)
        now = with_mig_modes(before, nvml)
        assert [(gpu.mig, gpu.mig_devices) for gpu in now.gpus] == [(False, ()), (True, ())]
        assert [gpu.index for gpu in now.sliceable] == [0]
        fake.mig("1g.10gb+me,1c.2g.20gb,1c.2g.20gb", gpu=1)
        (one, two, three) = with_mig_modes(now, nvml).gpus[1].mig_devices
        assert (one.profile, one.memory_mib, one.gi, one.ci) == ("1g.10gb+me", 10134, 1, 0)
        assert (two.profile, two.gi, two.ci) == ("1c.2g.20gb", 2, 0)
        assert (three.profile, three.gi, three.ci) == ("1c.2g.20gb", 2, 1)
        assert len({one.uuid, two.uuid, three.uuid}) == 3
        assert one.uuid.startswith("MIG-")
        assert read_inventory(nvml, tmp_path) == with_mig_modes(now, nvml)
        fake.mig(None, gpu=1)
        assert with_mig_modes(now, nvml) == before


def test_a_lost_gpu_keeps_the_mode_and_the_instances_that_it_had(tmp_path: Path) -> None:
    with Fake("h100", gpus=2) as fake, opened(fake) as nvml:
        fake.mig("1g.10gb")
        before = read_inventory(nvml, tmp_path)
        fake.xid(79)
        assert with_mig_modes(before, nvml) == before
        assert len(before.gpus[0].mig_devices) == 1


def test_gpus_before_ampere_have_no_mig(tmp_path: Path) -> None:
    (gpu,) = inventory("v100", 1, tmp_path).gpus
    assert (gpu.mig_capable, gpu.mig, gpu.mig_devices) == (False, False, ())
