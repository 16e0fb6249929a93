"""Where the driver's files are, on nodes of several kinds."""

from pathlib import Path

import pytest

from alnair.node.kubelet import driver_files
from alnair.node.kubelet.driver_files import (
    DriverError,
    DriverPlaces,
    find,
    library_folders,
    own_libraries,
)


def places(root: Path, libraries: str = "", devices: str = "") -> DriverPlaces:
    """Folders with these files."""
    for folder, names in (("lib", libraries), ("dev", devices)):
        (root / folder).mkdir()
        for name in names.split():
            (root / folder / name).touch()
    return DriverPlaces(root / "lib", root / "dev")


def test_what_a_driver_has_is_found_and_the_rest_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_files, "_PROGRAMS", ())
    found = find(
        places(
            tmp_path,
            "libcuda.so.1 libcuda.so.580.1 libnvidia-ml.so.1 libnvidia-nvvm.so.4 libc.so.6",
            "nvidia0 nvidia1 nvidiactl nvidia-uvm nvidia-caps sda",
        )
    )
    assert found.cuda == tmp_path / "lib" / "libcuda.so.1"
    assert [path.name for path in found.files] == ["libnvidia-ml.so.1", "libnvidia-nvvm.so.4"]
    assert found.control == ("nvidiactl", "nvidia-uvm")
    assert [found.has(found.device(minor)) for minor in (0, 1, 2)] == [True, True, False]


def test_the_first_folder_with_cuda_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / name for name in ("none", "without", "first", "second")]
    for folder in folders[1:]:
        folder.mkdir()
    for folder in folders[2:]:
        (folder / "libcuda.so.1").touch()
    monkeypatch.setattr(driver_files, "library_folders", lambda: folders)
    assert find(DriverPlaces(devices=tmp_path)).cuda == tmp_path / "first" / "libcuda.so.1"


def test_a_link_to_nothing_is_no_library(tmp_path: Path) -> None:
    wanted = places(tmp_path)
    (tmp_path / "lib" / "libcuda.so.1").symlink_to("libcuda.so.580.1")
    with pytest.raises(DriverError):
        find(wanted)


def test_a_node_without_a_driver_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match=r"libcuda.so.1 is not in .*/lib: .*--driver-libraries"):
        find(places(tmp_path))


def test_what_was_named_must_be_there(tmp_path: Path) -> None:
    lib = places(tmp_path, "libcuda.so.1")
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.mkdir()
    assert find(DriverPlaces(lib.libraries, also=(there,))).also == (there,)
    with pytest.raises(DriverError, match=r"missing is not there \(--driver-also\)"):
        find(DriverPlaces(lib.libraries, also=(there, missing)))


def test_distributions_are_looked_through_from_debian_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_files, "multiarch", lambda: "x86_64-linux-gnu")
    usual = [Path("/usr/lib64"), Path("/usr/lib")]
    assert library_folders() == [Path("/usr/lib/x86_64-linux-gnu"), *usual]
    monkeypatch.setattr(driver_files, "multiarch", lambda: "")
    assert library_folders() == usual


def test_what_is_mounted_is_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    wanted = places(tmp_path, "libcuda.so.580.1")
    (tmp_path / "lib" / "libcuda.so.1").symlink_to("libcuda.so.580.1")
    found = find(wanted)
    assert found.real(found.cuda) == str(tmp_path.resolve() / "lib" / "libcuda.so.580.1")


def test_an_agent_in_a_container_names_files_as_the_node_does(tmp_path: Path) -> None:
    lib, dev = tmp_path / "usr" / "lib64", tmp_path / "dev"
    for folder in (lib, dev, tmp_path / "run" / "more"):
        folder.mkdir(parents=True)
    for file in (lib / "libcuda.so.580.1", lib / "libnvidia-ml.so.1", dev / "nvidiactl"):
        file.touch()
    (lib / "libcuda.so.1").symlink_to("/usr/lib64/libcuda.so.580.1")
    more = Path("/run/more")
    found = find(DriverPlaces(Path("/usr/lib64"), also=(more,), root=tmp_path))
    assert found.cuda == Path("/usr/lib64/libcuda.so.1")
    assert found.real(found.cuda) == "/usr/lib64/libcuda.so.580.1"
    assert found.is_folder(more)
    assert found.control == ("nvidiactl",)
    assert own_libraries(DriverPlaces(Path("/usr/lib64"), root=tmp_path)) == [
        lib / "libcuda.so.580.1",
        lib / "libnvidia-ml.so.1",
    ]
    assert own_libraries(DriverPlaces()) == []
