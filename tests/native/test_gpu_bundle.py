"""The bundle of `make gpu-bundle` tests a GPU where there is nothing but a driver and Python."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu import machine
from native import build
from native.fake import Fake

OWN = f"3.{sys.version_info.minor}"
#: Seconds of them are starts of programs; the others are told by tests of their own.
EXACT = "1,2,14,16"

pytestmark = pytest.mark.skipif(bool(build.SANITIZE), reason="the bundle has no sanitizer")


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle")
    script = build.ROOT / "deploy" / "gpu_bundle.py"
    command = [sys.executable, script, "--python", OWN, "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = (path for path in out.iterdir() if path.is_dir())
    assert (out / f"{folder.name}.tar.gz").is_file()
    return folder


def ran(
    bundle: Path, fake: Fake | None, tmp_path: Path, *words: object, faults: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Starts it without network, without compilers, without a home."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    for name in ("sh", "dirname"):
        (programs / name).symlink_to(f"/bin/{name}" if name == "sh" else "/usr/bin/dirname")
    environment = {
        "PATH": str(programs),
        "HOME": str(tmp_path / "none"),
        **({"FAKEGPU_FAULT": faults} if faults else {}),
    }
    if fake is not None:
        environment |= {"LD_LIBRARY_PATH": str(build.PLAIN), "FAKEGPU_STATE": str(fake.state)}
    apart = ["/usr/bin/unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    return subprocess.run(
        [*apart, bundle / "run", *words, "--out", tmp_path / "out"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_runs_with_a_driver_and_python_alone_and_its_last_line_is_json(
    bundle: Path, fake: Fake, tmp_path: Path
) -> None:
    done = ran(bundle, fake, tmp_path, "--only", EXACT, "--scale", "0.02", "--no-server")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["failed"] == told["skipped"] == 0
    assert told["ok"] > 14
    assert told["is_fake"]
    (written,) = (tmp_path / "out").iterdir()
    # Nobody shall take it for what a GPU said.
    assert written.name == f"results-fake-nvidia-h200-{told['date']}.json"
    assert {row["test"] for row in json.loads(written.read_bytes())["rows"]} == {0, 1, 2, 14, 16}


def test_pids_of_another_namespace_are_mapped_and_show_what_is_held(
    bundle: Path, fake: Fake, tmp_path: Path
) -> None:
    words = ("--only", "1", "--scale", "0.02", "--no-server", "--json")
    done = ran(bundle, fake, tmp_path, *words, faults="nvml_pids_inside=1")
    told = json.loads(done.stdout)
    assert told["nvml_processes"] == "pids of another namespace, mapped", done.stderr
    assert [row for row in told["rows"] if row["verdict"] == "FAILED"] == []


def test_what_has_no_time_left_is_skipped_and_not_passed(
    bundle: Path, fake: Fake, tmp_path: Path
) -> None:
    words = ("--only", "1,2", "--minutes", "0", "--no-server", "--json")
    told = json.loads(ran(bundle, fake, tmp_path, *words).stdout)
    assert told["skipped"] == 2
    assert told["ok"] == 1  # what NVML tells


@pytest.mark.skipif(machine.opened()[0] is not None, reason="there is a GPU here")
def test_without_a_gpu_it_says_so_at_once_and_what_to_do(bundle: Path, tmp_path: Path) -> None:
    done = ran(bundle, None, tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: no NVIDIA driver here: ")
    assert done.stdout.endswith("start ./run on a machine with an NVIDIA GPU and its driver.\n")
    (tmp_path / "again").mkdir()
    told = json.loads(ran(bundle, None, tmp_path / "again", "--json").stdout)
    assert told["skipped"].startswith("no NVIDIA driver here")


def test_a_python_that_it_has_no_packages_for_is_told_which_ones(
    bundle: Path, fake: Fake, tmp_path: Path
) -> None:
    about = bundle / "bundle.json"
    kept = about.read_text()
    about.write_text(kept.replace(f'"{OWN}"', '"3.99"'))
    try:
        done = ran(bundle, fake, tmp_path)
    finally:
        about.write_text(kept)
    assert done.returncode == 1
    assert "for Python 3.99" in done.stderr
