"""What containers get, whole GPUs and slices, compared with golden files.

`ROOT` in the files stands for the folder of the test.
"""

from pathlib import Path

import msgspec
import pytest

from alnair.node.kubelet import container_edits, driver_files
from alnair.node.kubelet.cdi import Edits
from alnair.node.kubelet.driver_files import DriverFiles, DriverPlaces
from alnair.node.vgpu.installed_library import Installed

GOLDEN = Path(__file__).parents[3] / "golden"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(driver_files, "_PROGRAMS", ())
    folders = [tmp_path / "lib", Path("/usr/lib64"), Path("/usr/lib")]
    monkeypatch.setattr(container_edits, "library_folders", lambda: folders)
    return tmp_path.resolve()


@pytest.fixture
def driver(root: Path) -> DriverFiles:
    for name in ("lib", "dev", "state"):
        (root / name).mkdir()
    for name in ("libcuda.so.580", "libnvidia-ml.so.580"):
        (root / "lib" / name).touch()
        (root / "lib" / name.replace("580", "1")).symlink_to(name)
    for name in ("nvidia0", "nvidia1", "nvidia3", "nvidiactl", "nvidia-uvm"):
        (root / "dev" / name).touch()
    (root / "settings").touch()
    also = (root / "state", root / "settings")
    (root / "dev" / "nvidia-caps").mkdir()
    for place, minor in (("gi2", 30), ("gi2/ci0", 31), ("gi2/ci1", 32), ("gi5", 57)):
        folder = root / "capabilities" / "gpu3" / "mig" / place
        folder.mkdir(parents=True)
        (folder / "access").write_text(f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\n")
        (root / "dev" / "nvidia-caps" / f"nvidia-cap{minor}").touch()
    return driver_files.find(DriverPlaces(root / "lib", root / "dev", also, root / "capabilities"))


def text(edits: Edits, root: Path) -> str:
    said = msgspec.json.format(msgspec.json.encode(edits)).decode()
    return said.replace(str(root), "ROOT") + "\n"


def test_whole_gpus_come_with_the_driver_as_it_is(root: Path, driver: DriverFiles) -> None:
    edits = container_edits.whole(driver, [3, 1])
    assert text(edits, root) == (GOLDEN / "edits-of-whole-gpus.json").read_text()


def test_mig_devices_come_with_their_gpu_and_what_opens_them_alone(
    root: Path, driver: DriverFiles
) -> None:
    edits = container_edits.mig(driver, [(3, 2, 0), (3, 2, 1)])
    assert text(edits, root) == (GOLDEN / "edits-of-mig-devices.json").read_text()


def test_an_instance_that_cannot_be_opened_is_an_error(root: Path, driver: DriverFiles) -> None:
    for wanted in ((3, 1, 0), (3, 5, 0), (1, 2, 0)):  # the driver does not tell of it
        with pytest.raises(FileNotFoundError):
            container_edits.mig(driver, [wanted])
    (root / "dev" / "nvidia-caps" / "nvidia-cap31").unlink()
    with pytest.raises(OSError, match=r"nvidia-cap31 is missing, which opens .*/gpu3/mig/gi2/ci0"):
        container_edits.mig(driver, [(3, 2, 0)])


def test_a_slice_comes_with_the_library_in_the_drivers_place(
    root: Path, driver: DriverFiles
) -> None:
    library = Installed(root / "proxy", root / "preload", root / "list")
    edits = container_edits.sliced(driver, [1], library, root / "containers" / "uid-main")
    assert text(edits, root) == (GOLDEN / "edits-of-a-slice.json").read_text()


def test_a_slice_has_no_way_to_the_real_driver_but_the_librarys(
    root: Path, driver: DriverFiles
) -> None:
    """As docs/concepts/interposer.md promises."""
    library = Installed(root / "proxy", root / "preload", root / "list")
    edits = container_edits.sliced(driver, [1], library, root / "folder")
    cuda = str(root / "lib" / "libcuda.so.580")
    assert [m.container_path for m in edits.mounts if m.host_path == cuda] == [
        "/run/alnair/driver/libcuda.so.1"
    ]
    writable = {m.container_path for m in edits.mounts if "rw" in m.options}
    assert writable == {"/run/alnair/vgpu/counters", str(root / "state")}
    order = [m.container_path for m in edits.mounts]
    assert order.index("/run/alnair/vgpu") < order.index("/run/alnair/vgpu/counters")


def test_a_driver_in_user_space_has_no_devices(root: Path, driver: DriverFiles) -> None:
    edits = container_edits.whole(driver, [7])
    assert [node.path for node in edits.device_nodes] == ["/dev/nvidiactl", "/dev/nvidia-uvm"]
