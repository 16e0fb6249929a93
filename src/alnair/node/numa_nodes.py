"""The machine's NUMA nodes, as the kernel tells of them."""

import re
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.inventory import SYSFS

_TOTAL: Final = re.compile(r"MemTotal:\s+([0-9]+) kB")


class NumaNode(msgspec.Struct, frozen=True):
    """A NUMA node.

    Attributes:
        number: The kernel's.
        cpus: Its logical CPUs.
        memory_bytes: All its memory.
        distances: Other node, or itself → the kernel's distance, 10 to itself.
    """

    number: int
    cpus: frozenset[int] = frozenset()
    memory_bytes: int = 0
    distances: dict[int, int] = {}


def read_numa_nodes(sysfs: Path = SYSFS) -> tuple[NumaNode, ...]:
    """Return the nodes that have CPUs, by number; none on a kernel without NUMA.

    Others are memory alone, such as that of a GPU (Grace Hopper): no container is aligned to them.
    """
    folder = sysfs / "devices/system/node"
    try:
        online = sorted(number_set((folder / "online").read_text()))
        found = [_read(folder / f"node{number}", number, online) for number in online]
    except (OSError, ValueError):
        return ()
    return tuple(node for node in found if node.cpus)


def number_set(text: str) -> frozenset[int]:
    """Return the numbers of a list as the kernel writes them, such as `0-3,8`.

    Raises:
        ValueError: It is no such list.
    """
    found: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _read(folder: Path, number: int, online: list[int]) -> NumaNode:
    total = _TOTAL.search((folder / "meminfo").read_text())
    distances = [int(word) for word in (folder / "distance").read_text().split()]
    return NumaNode(
        number=number,
        cpus=number_set((folder / "cpulist").read_text()),
        memory_bytes=int(total[1]) << 10 if total else 0,
        distances=dict(zip(online, distances, strict=False)),
    )
