"""`alnair agent doctor` on the fake GPU: what it measures is what the fake is made of."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from alnair.node.gpu_report import entries
from native import build
from native.fake import Fake

CONTEXT, POOL_STEP, BLOCK = 522 << 20, 32 << 20, 2 << 20

pytestmark = pytest.mark.skipif(bool(build.SANITIZE), reason="Python here is not built so")


def doctor(fake: Fake, *words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "alnair", "agent", "doctor", *map(str, words)]
    environment = {**os.environ, **fake.environment()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_it_tells_the_costs_and_steps_that_the_fake_has(fake: Fake) -> None:
    done = doctor(fake, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["problems"] == []
    assert told["context_bytes"] == CONTEXT
    assert set(told["abilities"].values()) == {"yes"}
    assert told["clocks_mhz"]["sm most"] == 1980
    measured = told["measured"]
    assert measured["is_fake"]
    assert Path(measured["library"]).name == "libcuda.so.1"
    assert (measured["block_bytes"], measured["pool_step_bytes"]) == (BLOCK, POOL_STEP)
    assert measured["slice_us"] > 0
    assert measured["copy_gb_s"] > 0 < measured["host_copy_gb_s"]
    assert measured["host_on_gpu_bytes"] == 0
    assert measured["entries"]["missing"] == measured["entries"]["unhooked"] == []


def test_it_tells_where_slices_have_no_memory_of_the_host() -> None:
    with Fake("k80") as old:
        said = doctor(old).stdout
    assert "GB/s, none in memory of the host: slices cannot go beyond theirs" in said


def test_a_profile_of_the_fake_itself_is_refused_and_nothing_is_written(
    fake: Fake, tmp_path: Path
) -> None:
    done = doctor(fake, "--profile", tmp_path / "profile")
    assert done.returncode == 1
    assert "no measurement" in done.stderr
    assert not (tmp_path / "profile").exists()


def test_a_gpu_that_is_not_there_is_named(fake: Fake) -> None:
    done = doctor(fake, "--gpu", 7)
    assert done.returncode == 1
    assert "--gpu 7: the driver knows 1 GPU" in done.stderr


def test_functions_that_no_table_knows_are_told_by_name() -> None:
    flags = ("-shared", "-fPIC", "-DVERSION=13000")
    library = build.client("odd_driver", *flags)
    found = entries.compared(ctypes.CDLL(str(library)), library, 13000)
    assert found.unhooked == ("cuFutureThing",)
    assert "cuMemFree_v2" in found.missing
    assert "cuMemAlloc_v2" not in found.missing


def test_what_is_no_library_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no library")
    with pytest.raises(ValueError, match="is no 64-bit ELF library"):
        entries.exported(tmp_path / "text")
