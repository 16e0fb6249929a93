"""The machine's NUMA nodes, from a copy of what the kernel writes."""

from pathlib import Path

import pytest

from alnair.node.numa_nodes import NumaNode, number_set, read_numa_nodes
from kit.described_gpus import numa_folders

GIB = 1 << 30


def test_nodes_have_cpus_memory_and_distances(tmp_path: Path) -> None:
    numa_folders(tmp_path, {0: ("0-1,4", 2 * GIB, "10 21"), 1: ("2-3", GIB, "21 10")})
    assert read_numa_nodes(tmp_path) == (
        NumaNode(0, frozenset((0, 1, 4)), 2 * GIB, {0: 10, 1: 21}),
        NumaNode(1, frozenset((2, 3)), GIB, {0: 21, 1: 10}),
    )


def test_memory_without_cpus_is_no_place_for_containers(tmp_path: Path) -> None:
    """As of Grace Hopper, whose GPU memory is a node of its own; node 1 is not plugged in."""
    numa_folders(tmp_path, {0: ("0-71", 480 * GIB, "10 80"), 2: ("", 96 * GIB, "80 10")})
    assert read_numa_nodes(tmp_path) == (
        NumaNode(0, frozenset(range(72)), 480 * GIB, {0: 10, 2: 80}),
    )


def test_without_numa_there_are_none(tmp_path: Path) -> None:
    assert read_numa_nodes(tmp_path) == ()


def test_this_machine_can_be_read() -> None:
    for node in read_numa_nodes():
        assert node.cpus
        assert node.memory_bytes
        assert node.distances[node.number] == 10


@pytest.mark.parametrize(
    ("text", "numbers"), [("0\n", {0}), ("0-2,7\n", {0, 1, 2, 7}), ("\n", set())]
)
def test_lists_of_numbers_are_read_as_the_kernel_writes_them(text: str, numbers: set[int]) -> None:
    assert number_set(text) == numbers
