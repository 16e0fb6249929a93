"""Images hold programs of this machine with all that they are linked with."""

import os
import sys
from pathlib import Path

import pytest

from alnair.local.real_node import images

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a real node needs Linux")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Stands in for the programs that a C compiler makes, and the script."""
    for name, machine in (("pause", "/bin/true"), ("cuda_load", "/bin/cat")):
        (tmp_path / name).write_bytes(Path(machine).read_bytes())
        (tmp_path / name).chmod(0o755)
    (tmp_path / "cuda_load.py").write_text("print()")
    return tmp_path


def test_a_program_comes_with_its_libraries(sources: Path) -> None:
    by_name = {image.name: image for image in images.images(sources, sources)}
    assert set(by_name) == {images.PAUSE, images.CUDA, images.PYTHON}
    for name in (images.CUDA, images.PYTHON):
        held = {path for layer in by_name[name].layers for path in layer.copied}
        libraries = {path.rpartition("/")[2] for path in held}
        assert "libc.so.6" in libraries
        assert any(library.startswith("ld-linux") for library in libraries)
        assert any(path.endswith("bin/sh") for path in held)


def test_python_has_its_library_and_nothing_installed(sources: Path) -> None:
    [python] = (one for one in images.images(sources, sources) if one.name == images.PYTHON)
    held = {path for layer in python.layers for path in layer.copied}
    assert any(path.endswith("/ctypes/__init__.py") for path in held)
    assert not any("site-packages" in path for path in held)


def test_a_changed_program_makes_other_images(sources: Path) -> None:
    before = images.key(sources, sources)
    assert images.key(sources, sources) == before
    os.utime(sources / "pause", (1, 1))
    assert images.key(sources, sources) != before
