"""Drivers and GPUs as the agent's inventory describes them, without either."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from alnair.node.gpu_driver import GpuDriver
from alnair.node.inventory import GpuFacts, Inventory, MigDevice

H100 = "NVIDIA H100 80GB HBM3"


def gpu(
    index: int, model: str = H100, mib: int = 81559, *, mig: bool = False, cut: Sequence[str] = ()
) -> GpuFacts:
    """One of four GPUs: two on each of two NUMA nodes, all linked through NVSwitches.

    Args:
        index: From 0 to 3.
        model: NVML's name of it.
        mib: Its memory.
        mig: Whether it is in MIG mode.
        cut: The profiles of its MIG devices, MIG-0-1 and so on; then it is in that mode.
    """
    return GpuFacts(
        index,
        f"GPU-{index}",
        model,
        mib,
        minor=index,
        numa=index // 2,
        mig=mig or bool(cut),
        mig_capable=mig or bool(cut),
        mig_devices=tuple(
            MigDevice(f"MIG-{index}-{gi}", profile, gi, 0, 9856)
            for gi, profile in enumerate(cut, 1)
        ),
        links={other: "NV18" for other in range(4) if other != index},
    )


def inventory(*gpus: GpuFacts, driver: str = "615.36.01") -> Inventory:
    return Inventory(driver, gpus)


class DescribedDriver(GpuDriver):
    """A driver that is open, and has the GPUs that a test says."""

    def __init__(self, found: Inventory) -> None:
        super().__init__()
        self.inventory, self.opened, self.problem = found, 1, ""


def numa_folders(sysfs: Path, nodes: Mapping[int, tuple[str, int, str]]) -> None:
    """Write what the kernel tells of NUMA nodes: number → its CPUs, bytes and distances."""
    folder = sysfs / "devices/system/node"
    folder.mkdir(parents=True)
    (folder / "online").write_text(",".join(map(str, nodes)) + "\n")
    for number, (cpus, memory, distances) in nodes.items():
        node = folder / f"node{number}"
        node.mkdir()
        (node / "cpulist").write_text(f"{cpus}\n")
        (node / "distance").write_text(f"{distances}\n")
        (node / "meminfo").write_text(
            f"Node {number} MemTotal:  {memory >> 10} kB\nNode {number} MemFree:  1 kB\n"
        )
