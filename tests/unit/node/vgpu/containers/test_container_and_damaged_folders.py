"""A container's folder that cannot be used: nothing leaks, and the other containers are served."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from alnair.node.cgroups import Proc
from alnair.node.vgpu import server
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.containers.journal import Entry, Journal
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.server import VgpuServer

GPU = "GPU-00000000-0000-0000-0000-000000000001"


def assignment(name: str) -> ContainerSlices:
    return ContainerSlices(
        name, ContainerMatch(cgroup=f"/none/{name}"), (Share(GPU, 1024, 50),), keep=True
    )


def page(folder: Path) -> abi.Limits:
    return abi.Limits.from_buffer_copy((folder / "limits").read_bytes())


def descriptors() -> list[Path]:
    return sorted(Path("/proc/self/fd").iterdir())


def replace_by_folder(name: str) -> Callable[[Path], None]:
    """Damage: a file that is a folder."""

    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name / "inside").mkdir(parents=True)

    return damage


#: What keeps a container from being opened, at the first, second and third thing that is opened.
DAMAGES = {name: replace_by_folder(name) for name in ("limits", "counters", "socket.new")}


@pytest.fixture(params=list(DAMAGES))
def damage(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    return DAMAGES[request.param]


async def test_a_container_that_cannot_be_made_leaves_nothing_open(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    damage(folder)
    before = descriptors()
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            VgpuContainer(folder, Entry(assignment("a"), 0), Proc(), lambda: None)
    assert descriptors() == before


async def test_a_damaged_container_is_refused_and_the_others_are_served(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    async with VgpuServer(tmp_path) as first:
        assert [first.prepare(assignment(name)) for name in ("a", "b")] == ["", ""]
    folder = tmp_path / "containers" / "a"
    damage(folder)
    async with VgpuServer(tmp_path) as second:
        assert list(second.containers) == ["b"]
        assert list(second.damaged) == ["a"]
        if (folder / "limits").is_file():
            assert page(folder).state == abi.State.REFUSED
            assert b"the folder of this container" in page(folder).message
        assert page(tmp_path / "containers" / "b").state == abi.State.WAITING
    # It is not forgotten, nor is its folder.
    assert [entry.assignment.name for entry in Journal(tmp_path).load()] == ["a", "b"]
    assert folder.is_dir()


async def test_a_damaged_container_is_served_again_when_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REPAIR", 0.0)
    async with VgpuServer(tmp_path) as first:
        first.prepare(assignment("a"))
    folder = tmp_path / "containers" / "a"
    DAMAGES["counters"](folder)
    async with VgpuServer(tmp_path) as second:
        shutil.rmtree(folder / "counters")
        await second._look()
        assert (list(second.containers), second.damaged) == (["a"], {})
        assert page(folder).state == abi.State.WAITING


@pytest.mark.parametrize("again", [False, True])
async def test_a_damaged_container_is_removed_or_prepared_anew(tmp_path: Path, again: bool) -> None:
    async with VgpuServer(tmp_path) as first:
        first.prepare(assignment("a"))
    folder = tmp_path / "containers" / "a"
    DAMAGES["limits"](folder)
    async with VgpuServer(tmp_path) as second:
        said = second.prepare(assignment("a")) if again else second.remove("a")
        assert (said, second.damaged) == ("", {})
        assert list(second.containers) == (["a"] if again else [])
        assert folder.exists() == again
    assert len(Journal(tmp_path).load()) == int(again)
