"""Every program of a node is called with files of its cluster, and asked at the node's address."""

import sys
from pathlib import Path

import pytest

from alnair.local.layout import Layout
from alnair.local.programs.versions import MODULES
from alnair.local.real_node import programs
from alnair.local.real_node.settings import NodeSettings

LAYOUT = Layout(Path("/clusters"), "one")
NODE = NodeSettings(LAYOUT, 7, 2, "h100", 16400)
FOUND = {name: Path("/cache", name) for name in programs.PROGRAMS}


@pytest.mark.parametrize("name", programs.NAMES[2:])
def test_a_program_reads_files_of_its_cluster_alone(name: str) -> None:
    one = programs.program(name, NODE, FOUND)
    ours = name == programs.AGENT  # it is part of Alnair, and run by the same Python
    start = [sys.executable, "-m", "alnair", "agent"] if ours else [f"/cache/{name}"]
    assert one.command[: len(start)] == start
    assert all(path.is_relative_to(LAYOUT.folder) for path in one.reads)
    assert one.health == "" or one.health.startswith(f"http://{NODE.address}:")


def test_every_program_but_ours_is_built_from_a_module() -> None:
    assert set(programs.NAMES[2:]) - set(programs.PROGRAMS) == {programs.AGENT}
    assert set(programs.PROGRAMS) <= {name for module in MODULES for name in module.programs}


def test_the_node_is_entered_by_all_of_its_namespaces() -> None:
    assert programs.enter(42) == (
        *("nsenter", "--target=42", "--mount", "--pid", "--net", "--ipc", "--uts", "--"),
    )
