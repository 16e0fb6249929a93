"""The fake GPU's libraries are put where a driver's would be, only when they differ."""

from pathlib import Path

import pytest

from alnair.local.real_node import fake_gpu


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for the libraries, which take a minute to build."""
    folder = tmp_path / "built"
    folder.mkdir()
    for name in fake_gpu.LIBRARIES:
        (folder / name).write_text(name)
    monkeypatch.setattr(fake_gpu, "BUILT", folder)
    return folder


def test_libraries_that_differ_are_replaced(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "driver"
    fake_gpu.install(place)
    assert {path.name for path in place.iterdir()} == set(fake_gpu.LIBRARIES)
    before = {path.name: path.stat().st_ino for path in place.iterdir()}
    (built / "libcuda.so.1").write_text("newer")
    fake_gpu.install(place)
    after = {path.name: path.stat().st_ino for path in place.iterdir()}
    # Replaced and not overwritten: programs may have the old one mapped.
    assert {name for name in before if before[name] != after[name]} == {"libcuda.so.1"}


def test_every_model_is_a_profile_of_the_fake_gpu() -> None:
    assert {"h100", "t4", "v100"} <= set(fake_gpu.models())


def test_the_gpus_are_where_the_driver_looks_for_them() -> None:
    header = (fake_gpu.SOURCES / "fakegpu" / "state" / "state.h").read_text()
    folder, _, name = fake_gpu.STATE.rpartition("/")
    assert f'#define FG_MOUNTED "{folder}"' in header
    assert name == "state"
