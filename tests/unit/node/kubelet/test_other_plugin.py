"""Another plugin is seen by its socket, or by what the kubelet remembers."""

import os
import time
from pathlib import Path

import pytest

from alnair.model import names
from alnair.node.kubelet.other_plugin import OtherPlugin
from kit.kubelet_sockets import Kubelet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = Kubelet(tmp_path).plugins
    found.mkdir()
    return found


def remember(folder: Path, *resources: str) -> None:
    """Let the kubelet have been told of these."""
    kubelet = Kubelet(folder.parent)
    kubelet._known.update(resources)
    kubelet.write_checkpoint()


@pytest.mark.parametrize("name", ["nvidia-gpu.sock", "nvidia-mig-1g.5gb.sock", "nvidiaGPU-17.sock"])
def test_a_socket_tells(folder: Path, name: str) -> None:
    (folder / name).touch()
    (folder / "alnair-nvidia.com-gpu.sock").touch()
    assert OtherPlugin(folder, names.GPU).seen() == f"its socket {name} is in {folder}"


def test_nobody_is_seen_in_a_fresh_folder(folder: Path) -> None:
    assert OtherPlugin(folder, names.GPU).seen() == ""
    remember(folder, names.VGPU)
    assert OtherPlugin(folder, names.GPU).seen() == ""


def test_the_kubelets_memory_tells_where_sockets_are_gone(folder: Path) -> None:
    remember(folder, names.GPU)
    assert "checkpoint knows it" in OtherPlugin(folder, names.GPU).seen()


def test_our_own_traces_are_not_anothers(folder: Path) -> None:
    OtherPlugin(folder, names.GPU).note_ours()
    remember(folder, names.GPU)
    assert OtherPlugin(folder, names.GPU).seen() == ""


def test_one_that_came_after_us_has_the_resource_from_then_on(folder: Path) -> None:
    OtherPlugin(folder, names.GPU).note_ours()
    remember(folder, names.GPU)
    socket = folder / "nvidia-gpu.sock"
    socket.touch()
    assert "nvidia-gpu.sock" in OtherPlugin(folder, names.GPU).seen()
    socket.unlink()  # the kubelet has restarted, and it is not back yet
    assert "checkpoint knows it" in OtherPlugin(folder, names.GPU).seen()


def test_one_may_have_come_when_the_folder_was_changed(folder: Path) -> None:
    os.utime(folder, (0, 1))
    other = OtherPlugin(folder, names.GPU)
    assert [other.may_have_come(), other.may_have_come()] == [True, False]
    (folder / "nvidia-gpu.sock").touch()
    assert other.may_have_come()


def test_one_may_have_come_in_the_same_tick_of_the_kernels_clock_as_a_change(folder: Path) -> None:
    other = OtherPlugin(folder, names.GPU)
    # One that is not over yet, however long this test stands still.
    tick = time.time_ns() + 3600 * 10**9
    os.utime(folder, ns=(tick, tick))
    assert other.may_have_come()
    (folder / "nvidia-gpu.sock").touch()
    os.utime(folder, ns=(tick, tick))
    assert other.may_have_come()


def test_a_damaged_checkpoint_tells_nothing(folder: Path) -> None:
    (folder / "kubelet_internal_checkpoint").write_bytes(b"{")
    assert OtherPlugin(folder, names.GPU).seen() == ""
