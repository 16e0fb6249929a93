"""A build is used only when it is whole, and what a killed one left is removed."""

import os
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from alnair.local.errors import LocalClusterError
from alnair.local.programs import binaries, build
from alnair.local.programs.versions import ETCD, MODULES

BY_NAME = {module.name: module for module in MODULES}
ETCD_MODULE = BY_NAME["etcd"]
KUBERNETES_MODULE = BY_NAME["kubernetes"]
CONTAINERD_MODULE = BY_NAME["containerd"]
RUNC_MODULE = BY_NAME["runc"]

#: Stands in for `go`, which takes minutes: the same commands, and a program that says its version.
GO = """#!/bin/sh
echo "$CGO_ENABLED $@" >>"$CALLS"
case "$1 $2" in
"mod download") ;;
"list -deps") printf 'true\\nfalse\\ntrue\\n' ;;
"build -v")
    if [ -n "$FAIL" ]; then echo "compile: no space left on device"; exit 1; fi
    echo first/package; echo second/package
    for program in ${BINARIES:-etcd}; do
        printf '#!/bin/sh\\necho "%s"\\n' "$SAYS" >"$4$program"; chmod +x "$4$program"
    done ;;
esac
"""


class Progress:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.parts: list[tuple[int, int]] = []

    def step(self, text: str) -> None:
        self.steps.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        self.parts.append((done, total))


@pytest.fixture
def go(tmp_path: Path) -> Path:
    path = tmp_path / "go"
    path.write_text(GO)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "ALNAIR_CACHE": str(tmp_path / "cache"),
        "CALLS": str(tmp_path / "calls"),
        "SAYS": f"etcd Version: {ETCD}",
    }


@pytest.fixture
def left_running(environ: dict[str, str], tmp_path: Path) -> Iterator[psutil.Process]:
    """What a killed build leaves: a compiler that goes on."""
    mark = {"ALNAIR_LOCAL_BUILD": str(tmp_path / "cache" / "build")}
    with subprocess.Popen(["sleep", "60"], env=environ | mark) as process:
        yield psutil.Process(process.pid)
        process.kill()


def test_a_build_leaves_its_programs_and_nothing_else(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    progress = Progress()
    build.build(go, ETCD_MODULE, environ, progress)
    found, missing = binaries.locate(["etcd"], environ, progress)
    assert found["etcd"].parent == binaries.built(ETCD_MODULE, environ)
    assert not missing
    assert progress.parts == [(1, 3), (2, 3), (3, 3)]
    assert not (tmp_path / "cache" / "build").exists()
    log = (tmp_path / "cache" / "logs" / "build-etcd.log").read_text()
    assert "second/package" in log


def test_the_versions_that_programs_report_are_set_when_they_are_linked(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    said = {"SAYS": "Kubernetes v1.36.3", "BINARIES": "kubernetes"}
    build.build(go, KUBERNETES_MODULE, environ | said, Progress())
    calls = (tmp_path / "calls").read_text()
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in calls
    folder = binaries.built(KUBERNETES_MODULE, environ)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ("kubernetes", *KUBERNETES_MODULE.programs)
    )


def test_a_module_of_several_programs_is_built_by_its_packages_and_tags(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    programs = "containerd containerd-shim-runc-v2 ctr"
    said = {"SAYS": "containerd github.com/containerd/containerd/v2 2.4.2", "BINARIES": programs}
    build.build(go, CONTAINERD_MODULE, environ | said, Progress())
    folder = binaries.built(CONTAINERD_MODULE, environ)
    assert sorted(path.name for path in folder.iterdir()) == programs.split()
    last = (tmp_path / "calls").read_text().splitlines()[-1]
    assert "-tags=no_btrfs,no_devmapper,no_zfs" in last
    assert last.endswith(" ".join(CONTAINERD_MODULE.packages))


def test_only_a_module_with_c_is_built_with_c_and_statically(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    build.build(go, ETCD_MODULE, environ, Progress())
    said = {"SAYS": "runc version 1.4.3", "BINARIES": "runc"}
    build.build(go, RUNC_MODULE, environ | said, Progress())
    builds = [line for line in (tmp_path / "calls").read_text().splitlines() if " -v " in line]
    assert ["-extldflags -static" in line for line in builds] == [False, True]
    assert [line.startswith("1 ") for line in builds] == [False, True]


def test_what_is_there_is_not_built_again(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    build.build(go, ETCD_MODULE, environ, Progress())
    before = (tmp_path / "calls").read_text()
    build.build(go, ETCD_MODULE, environ, Progress())
    assert (tmp_path / "calls").read_text() == before


def test_half_of_a_build_is_replaced(go: Path, environ: dict[str, str]) -> None:
    binaries.built(ETCD_MODULE, environ).mkdir(parents=True)
    build.build(go, ETCD_MODULE, environ, Progress())
    assert (binaries.built(ETCD_MODULE, environ) / "etcd").is_file()


def test_a_failing_build_tells_its_reason_and_the_log(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(LocalClusterError, match="etcd could not be built: compile: no space left"):
        build.build(go, ETCD_MODULE, environ | {"FAIL": "1"}, Progress())
    assert not binaries.built(ETCD_MODULE, environ).exists()
    assert not (tmp_path / "cache" / "build").exists()


def test_a_build_of_another_version_is_not_used(go: Path, environ: dict[str, str]) -> None:
    with pytest.raises(LocalClusterError, match=r"reports version 3\.5\.0: remove"):
        build.build(go, ETCD_MODULE, environ | {"SAYS": "etcd Version: 3.5.0"}, Progress())
    assert not binaries.built(ETCD_MODULE, environ).exists()


def test_what_a_killed_build_left_is_ended_and_removed(
    go: Path, environ: dict[str, str], tmp_path: Path, left_running: psutil.Process
) -> None:
    litter = tmp_path / "cache" / "build" / "tmp" / "go-build123"
    litter.mkdir(parents=True)
    build.build(go, ETCD_MODULE, environ, Progress())
    assert not litter.exists()
    for _ in range(2000):
        if left_running.status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.01)
    assert left_running.status() == psutil.STATUS_ZOMBIE


def test_an_interrupt_ends_the_build_and_the_next_one_succeeds(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    class Impatient(Progress):
        def progress(self, what: str, done: int, total: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build.build(go, ETCD_MODULE, environ, Impatient())
    assert not (tmp_path / "cache" / "build").exists()
    build.build(go, ETCD_MODULE, environ, Progress())
    assert (binaries.built(ETCD_MODULE, environ) / "etcd").is_file()
