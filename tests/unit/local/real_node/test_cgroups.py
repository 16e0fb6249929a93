"""Control groups are made in each hierarchy, v1 or v2, and go with all below them."""

import os
from pathlib import Path

import pytest

from alnair.local.errors import LocalClusterError
from alnair.local.real_node import cgroups


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Hierarchies of v1, as folders."""
    for name in ("cpu", "cpuset", "unified"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text("")
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpu,cpuacct").symlink_to("cpu")
    (tmp_path / "none").mkdir()
    return tmp_path


def test_every_hierarchy_of_v1_gets_a_group_once(first: Path) -> None:
    cgroups.make("alnair", first)
    cgroups.make("alnair", first)
    found = sorted(str(path.relative_to(first)) for path in first.glob("*/alnair"))
    assert found == ["cpu,cpuacct/alnair", "cpu/alnair", "cpuset/alnair", "unified/alnair"]


def test_v2_has_one_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "system.slice").mkdir()
    cgroups.make("alnair", tmp_path)
    assert (tmp_path / "alnair").is_dir()
    assert not (tmp_path / "system.slice" / "alnair").exists()


@pytest.mark.parametrize(
    ("weight", "of_one", "expected"),
    [("cpu.shares", "1024\n", "4096"), ("cpu.weight", "100\n", "400")],
)
def test_on_two_processors_pods_weigh_as_much_as_four_processes(
    first: Path, monkeypatch: pytest.MonkeyPatch, weight: str, of_one: str, expected: str
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    group = first / "cpu" / "alnair"
    group.mkdir()
    (group / weight).write_text(of_one)
    cgroups.make("alnair", first)
    assert (group / weight).read_text() == expected


def test_a_group_goes_with_the_groups_in_it(first: Path) -> None:
    (first / "cpu" / "alnair" / "kubepods" / "pod1").mkdir(parents=True)
    cgroups.remove("alnair", first)
    assert not list(first.glob("*/alnair"))
    cgroups.remove("alnair", first)


def test_processes_that_do_not_end_are_told(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_GONE_SECONDS", 0)
    (first / "cpu" / "alnair").mkdir()
    (first / "cpu" / "alnair" / "held").write_text("a file, which rmdir refuses")
    with pytest.raises(LocalClusterError, match=r"processes are left in .*cpu/alnair: end those"):
        cgroups.remove("alnair", first)
