"""Python packages of the locks, fetched by pip into the cache folder; hashes are checked by pip."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from alnair.built_from import ROOT
from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.own_images.checkout import digest
from alnair.local.report import ProgressReport

LOCKS: Final = ROOT / "requirements"
#: Those that deploy/images/assemble.py installs.
_MANYLINUX: Final = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
_LOCKED: Final = ("--no-deps", "--require-hashes")


def wheels(
    name: str,
    machine: str,
    environ: Mapping[str, str],
    report: ProgressReport,
    *,
    python: str = "3.11",
) -> Path:
    """The folder with the wheels of an image's lock.

    Args:
        name: Of the image.
        machine: The image's processor, as the kernel calls it.
        environ: Names the cache folder.
        report: Told of the download.
        python: That they are for; images have 3.11.

    Raises:
        LocalClusterError: They cannot be fetched.
    """
    lock = LOCKS / f"image-{name}.txt"
    platforms = [f"--platform={one}_{machine}" for one in _MANYLINUX]
    abis = [f"--abi=cp{python.replace('.', '')}", "--abi=abi3", "--abi=none"]
    options = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]

    def fetch(folder: Path) -> None:
        report.step(f"fetching the packages of {lock.name} for {machine}")
        command = ["download", *_LOCKED, *platforms, *abis, *options]
        _pip(*command, "--dest", str(folder), "--requirement", str(lock))

    kind = machine if python == "3.11" else f"{machine}-{python}"
    folder = cache_folder(environ) / "wheels" / f"{lock.stem}-{kind}-{digest([lock])[:20]}"
    return _once(folder, fetch)


def build_tools(environ: Mapping[str, str], report: ProgressReport) -> Path:
    """The folder with hatchling, auditwheel and ziglang, to be put into PYTHONPATH.

    Raises:
        LocalClusterError: They cannot be installed.
    """
    lock = LOCKS / "build.txt"

    def install(folder: Path) -> None:
        report.step(f"installing the packages of {lock.name}, 100 MB, into {folder.parent}")
        _pip("install", *_LOCKED, "--target", str(folder), "--requirement", str(lock))

    key = digest([lock], sys.version)[:20]
    return _once(cache_folder(environ) / "tools" / f"{lock.stem}-{key}", install)


def install(folder: Path, packages: Sequence[str]) -> None:
    """Installs packages of exact versions into a folder, for the Python that runs this.

    Args:
        folder: Made, if it is not there.
        packages: All of them: what they need besides is not added.

    Raises:
        LocalClusterError: They cannot be fetched.
    """
    options = ["--no-deps", "--no-compile", "--only-binary=:all:", "--no-cache-dir"]
    _pip("install", *options, "--target", str(folder), *packages)


def _once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Makes a folder unless it is there; half of one is never seen."""
    if not folder.is_dir():
        with exclusive(folder.with_suffix(".lock"), lambda: None):
            if not folder.is_dir():
                partial = folder.with_suffix(".partial")
                shutil.rmtree(partial, ignore_errors=True)
                make(partial)
                partial.rename(folder)
    return folder


def _pip(*arguments: str) -> None:
    command: Sequence[str] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    result = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        said = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LocalClusterError(
            f"packages of {arguments[-1]} cannot be fetched ({said}):"
            " check the network and pip's index settings"
        )
