"""The files that an agent mounts into containers are whole, marked and replaced in one step."""

from pathlib import Path

import pytest

from alnair.node.vgpu.installed_library import Installed, InstallError, install

PROXY, PRELOAD = b"\x7fELF proxy ", b"\x7fELF preload "
UNSET, SET = b"ALNAIR-VGPU-MUST-LIMIT=0\0rest", b"ALNAIR-VGPU-MUST-LIMIT=1\0rest"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with both builds."""
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / "proxy").write_bytes(PROXY + UNSET)
    (folder / "preload").write_bytes(PRELOAD + UNSET)
    return folder


def put(built: Path) -> Installed:
    """Install them beside it."""
    folder = built.parent / "agent" / "library"
    return install(folder, proxy=built / "proxy", preload=built / "preload")


def test_copies_carry_the_mark_and_the_list_names_where_the_library_is_mounted(built: Path) -> None:
    files = put(built)
    assert files.proxy.read_bytes() == PROXY + SET
    assert files.preload.read_bytes() == PRELOAD + SET
    assert files.preload_list.read_text() == "/usr/lib/alnair/libalnair_vgpu.so\n"
    assert {path.name for path in files.proxy.parent.iterdir()} == {
        "libcuda.so.1",
        "libalnair_vgpu.so",
        "ld.so.preload",
    }
    assert {path.stat().st_mode & 0o777 for path in files.proxy.parent.iterdir()} == {0o755}
    assert (built / "proxy").read_bytes() == PROXY + UNSET


def test_a_file_that_is_the_same_stays_and_another_is_replaced_not_written(built: Path) -> None:
    files = put(built)
    before = files.proxy.stat().st_ino, files.preload.stat().st_ino
    with files.preload.open("rb") as running:
        assert put(built) == files
        assert (files.proxy.stat().st_ino, files.preload.stat().st_ino) == before
        (built / "preload").write_bytes(b"newer" + UNSET)
        put(built)
        assert files.proxy.stat().st_ino == before[0]
        assert files.preload.stat().st_ino != before[1]
        assert running.read() == PRELOAD + SET
    assert files.preload.read_bytes() == b"newer" + SET


@pytest.mark.parametrize("damage", ["half", "mode", "link"])
def test_what_somebody_damaged_is_put_right(built: Path, damage: str) -> None:
    files = put(built)
    if damage == "half":
        files.proxy.write_bytes(PROXY)
    elif damage == "mode":
        files.proxy.chmod(0o777)
    else:
        files.proxy.unlink()
        files.proxy.symlink_to(built / "proxy")
    put(built)
    assert not files.proxy.is_symlink()
    assert files.proxy.read_bytes() == PROXY + SET
    assert files.proxy.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("text", [PROXY, PROXY + UNSET + UNSET, PROXY + UNSET + SET])
def test_a_library_that_has_no_one_place_for_the_mark_is_refused(built: Path, text: bytes) -> None:
    (built / "proxy").write_bytes(text)
    with pytest.raises(InstallError, match=r"proxy is no library of this version: make -C native"):
        put(built)
    assert not (built.parent / "agent").exists()


def test_a_library_that_is_not_there_is_said(built: Path) -> None:
    (built / "preload").unlink()
    with pytest.raises(InstallError, match="preload cannot be read: No such file"):
        put(built)
