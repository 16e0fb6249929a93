"""What an image holds of a package's library: what is loaded, and no more."""

import ctypes
import runpy
import struct
from pathlib import Path

import msgspec._core
import pytest

from alnair.built_from import ROOT

STRIP = runpy.run_path(str(ROOT / "deploy" / "images" / "assemble.py"))["strip"]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with what a debugger reads at its end."""
    path = tmp_path / "_core.so"
    path.write_bytes(Path(msgspec._core.__file__).read_bytes() + b"debug" * 1000)
    return path


def test_a_library_is_loaded_without_its_sections(library: Path) -> None:
    before = library.stat().st_size
    STRIP(library)
    assert library.stat().st_size <= before - 5000
    assert struct.unpack_from("<Q", library.read_bytes(), 40) == (0,)
    assert ctypes.PyDLL(str(library)).PyInit__core


def test_what_was_cut_is_cut_no_further(library: Path) -> None:
    STRIP(library)
    once = library.read_bytes()
    STRIP(library)
    assert library.read_bytes() == once


def test_what_is_no_library_is_left_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "libm.so"
    script.write_text("INPUT(libm.so.6)")
    STRIP(script)
    assert script.read_text() == "INPUT(libm.so.6)"
