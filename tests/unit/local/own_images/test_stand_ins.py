"""A library loads without those that it was linked with, and is told that there is no GPU."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from alnair.local.own_images import stand_ins

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc") or not shutil.which("nm"),
    reason="made by a C compiler and judged by binutils, for Linux",
)
#: Two heavy libraries, and one that uses them: functions, and the type of a C++ class.
CUDA = "int cudaCount(void) { return 0; }"
KERNELS = """
int _ZN6kernel3runEv(void) { return 7; }
const char _ZTSN6kernel4TypeE[] = "N6kernel4TypeE";
struct { void *table; const char *name; } _ZTIN6kernel4TypeE = {0, _ZTSN6kernel4TypeE};
"""
USER = """
int cudaCount(void);
void *_ZN6kernel3runEv(void);
extern struct { void *table; const char *name; } _ZTIN6kernel4TypeE;
int count(void) { return cudaCount(); }
void *run(void) { return _ZN6kernel3runEv(); }
const char *type(void) { return _ZTIN6kernel4TypeE.name; }
extern void *_ZTVN4c10d7Backend7OptionsE[];
void *_ZTVN4c10d7Backend7OptionsE[8];
"""


def compiled(folder: Path, name: str, text: str, *needed: str) -> None:
    source = folder / f"{name}.c"
    source.write_text(text)
    linked = [f"-l:{one}" for one in needed]
    options = ["-shared", "-fPIC", "-w", f"-L{folder}", "-Wl,-rpath,$ORIGIN", f"-Wl,-soname,{name}"]
    subprocess.run(["cc", *options, "-o", folder / name, source, *linked], check=True)
    source.unlink()


def test_what_is_missing_is_stood_in_for(tmp_path: Path) -> None:
    compiled(tmp_path, "libcuda_like.so.1", CUDA)
    compiled(tmp_path, "libkernels.so", KERNELS, "libcuda_like.so.1")
    compiled(tmp_path, "libuser.so", USER, "libkernels.so", "libcuda_like.so.1")
    (tmp_path / "libcuda_like.so.1").unlink()  # never fetched
    with pytest.raises(OSError, match="libcuda_like"):
        ctypes.CDLL(str(tmp_path / "libuser.so"))
    stand_ins.replace(tmp_path, "libkernels.so", [])
    user = ctypes.CDLL(str(tmp_path / "libuser.so"))
    assert user.count() == 100
    user.run.restype = ctypes.c_void_p
    assert user.run() is not None
    user.type.restype = ctypes.c_char_p
    assert user.type() == b"N6kernel4TypeE"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["libcuda_like.so.1", "libkernels.so", "libuser.so"]
