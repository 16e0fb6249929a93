"""The wheels: clean for old machines, the same at each build, and enough without a checkout."""

import hashlib
import os
import runpy
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from alnair.built_from import ROOT
from alnair.local.errors import LocalClusterError
from alnair.local.own_images import checkout, wheel
from alnair.local.report import NO_REPORT


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, Path]:
    """All wheels, by machine."""
    folder = tmp_path_factory.mktemp("dist")
    try:
        return {
            machine: wheel.build(machine, folder, os.environ, NO_REPORT)
            for machine in (None, *wheel.MACHINES)
        }
    except LocalClusterError as error:
        if "cannot be fetched" not in str(error):
            raise
        pytest.skip(f"no network: {error}")


@pytest.fixture(scope="module")
def installed(wheels: dict[str | None, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment where nothing but the wheel of this machine was installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    installer = runpy.run_path(str(ROOT / "requirements" / "install.py"))
    key = installer["digest"](ROOT / "requirements" / "dev.txt")
    fetched = installer["cache"]() / "wheels" / f"dev-{key}"
    if not fetched.is_dir():
        pytest.skip("the wheels of `make install` are not in the cache folder")
    pip = [sys.executable, "-m", "pip", f"--python={folder}", "--quiet"]
    source = ["--no-index", f"--find-links={fetched}"]
    made = wheels[os.uname().machine]
    subprocess.run([*pip, "install", "--no-compile", *source, str(made)], check=True)
    return folder


def run(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [installed / "bin" / "alnair", *arguments],
        capture_output=True,
        text=True,
        cwd=installed,
        timeout=120,
        check=False,
    )


def test_a_platform_wheel_asks_for_no_more_than_glibc_2_17(
    wheels: dict[str | None, Path],
) -> None:
    for machine in wheel.MACHINES:
        assert wheels[machine].name.endswith(f"-py3-none-manylinux2014_{machine}.whl")
        said = wheel.audit(wheels[machine], os.environ, NO_REPORT)
        assert f'"manylinux_2_17_{machine}"' in " ".join(said.split())


def test_only_platform_wheels_have_the_library(wheels: dict[str | None, Path]) -> None:
    for machine, path in wheels.items():
        with zipfile.ZipFile(path) as archive:
            libraries = [name for name in archive.namelist() if ".so" in name]
        assert len(libraries) == (2 if machine else 0)


def test_the_same_files_give_the_same_wheel(wheels: dict[str | None, Path], tmp_path: Path) -> None:
    for machine in (None, "x86_64"):
        again = wheel.build(machine, tmp_path, os.environ, NO_REPORT)
        sums = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (again, wheels[machine])}
        assert len(sums) == 1


def test_the_version_of_a_wheel_names_its_commit(installed: Path) -> None:
    expected = checkout.commit() or "unknown"
    assert f"(commit {expected})" in run(installed, "--version").stdout


@pytest.mark.parametrize("verb", ["", "explain", "scheduler", "simulate"])
def test_help_needs_no_checkout(installed: Path, verb: str) -> None:
    result = run(installed, *verb.split(), "--help")
    assert result.returncode == 0, result.stderr


def test_a_shipped_trace_is_simulated_without_a_checkout(installed: Path) -> None:
    result = run(installed, "simulate", "cluster", "openb", "--limit", "200", "--json")
    assert result.returncode == 0, result.stderr


def test_an_installed_alnair_finds_its_library(installed: Path) -> None:
    program = (
        "from alnair.node.vgpu import interposer_path as p; print(p.interposer()); print(p.proxy())"
    )
    command = [installed / "bin" / "python", "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert [Path(path).name for path in said] == ["libalnair_vgpu.so", "libcuda.so.1"]
    assert all(Path(path).is_relative_to(installed) for path in said)


def test_what_needs_the_repository_or_more_packages_says_so(installed: Path) -> None:
    result = run(installed, "up", "--name", "none")
    assert result.returncode == 1
    assert "pip install 'alnair[local]'" in result.stderr
    assert "Traceback" not in result.stderr
