"""The programs of the cluster: found where the user has them, or built once and kept."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from alnair.local.layout import cache_folder
from alnair.local.programs.versions import MODULES, Module
from alnair.local.report import ProgressReport

SOURCES = Path(__file__).parents[1] / "modules"
_ASSETS = "KUBEBUILDER_ASSETS"


def key(module: Module) -> str:
    """Names the build of a module: its version and a digest of all that it is built from."""
    sha = hashlib.sha256(repr(module).encode())
    for name in ("go.mod", "go.sum", "main.go"):
        path = SOURCES / module.name / name
        # Without our own main.go, the module's packages are programs as they are.
        sha.update(path.read_bytes() if path.exists() else b"")
    return f"{module.name}-{module.version}-{sha.hexdigest()[:10]}"


def built(module: Module, environ: Mapping[str, str]) -> Path:
    """The folder with the built programs of a module, whether it exists or not."""
    return cache_folder(environ) / "bin" / key(module)


def locate(
    programs: Iterable[str], environ: Mapping[str, str], report: ProgressReport
) -> tuple[dict[str, Path], list[Module]]:
    """Finds the programs of the pinned versions.

    In this order: the folder KUBEBUILDER_ASSETS (as of envtest), our own builds, PATH.

    Returns:
        The programs found, and the modules to build for the rest.
    """
    found: dict[str, Path] = {}
    missing: list[Module] = []
    wanted = set(programs)
    for module in MODULES:
        for program in module.programs:
            if program not in wanted:
                continue
            path = _locate(program, module, environ, report)
            if path is not None:
                found[program] = path
            elif module not in missing:
                missing.append(module)
    return found, missing


def _locate(
    program: str, module: Module, environ: Mapping[str, str], report: ProgressReport
) -> Path | None:
    if assets := environ.get(_ASSETS):
        path = Path(assets, program).absolute()
        version = reported_version(path, module)
        if version == module.version:
            return path
        if version is not None:
            report.step(f"{path} is version {version}, {module.version} is needed: not using it")
    ours = built(module, environ) / program
    if ours.is_file():
        return ours
    on_path = shutil.which(program, path=environ.get("PATH"))
    if on_path and reported_version(Path(on_path), module) == module.version:
        return Path(on_path).absolute()
    return None


def reported_version(program: Path, module: Module) -> str | None:
    """The version that a program reports; None when it does not run or says something else."""
    try:
        result = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(module.version_pattern, result.stdout + result.stderr)
    return match.group(1) if match else None
