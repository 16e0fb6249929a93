"""Alnair's wheels: the pure one, and one for each processor with the C library inside."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from alnair.built_from import ROOT
from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.own_images import checkout, python_packages
from alnair.local.report import ProgressReport

MACHINES: Final = ("x86_64", "aarch64")
_ZIG_CACHES: Final = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")


def build(
    machine: str | None, folder: Path, environ: Mapping[str, str], report: ProgressReport
) -> Path:
    """Builds a wheel.

    Args:
        machine: For this processor, with the C library; None: the pure wheel.
        folder: Where to put it.
        environ: Names the cache folder.
        report: Told what is going on.

    Raises:
        LocalClusterError: It cannot be built.
    """
    checkout.require()
    tools = python_packages.build_tools(environ, report)
    settings = {
        "PYTHONPATH": str(tools),
        "SOURCE_DATE_EPOCH": str(checkout.time()),
        "ALNAIR_COMMIT": checkout.commit(),
    }
    if machine:
        native = libraries(machine, environ, report)
        settings |= {"ALNAIR_MACHINE": machine, "ALNAIR_NATIVE": str(native)}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", fresh]
        _run(command, {**environ, **settings}, "the wheel cannot be built")
        (made,) = Path(fresh).glob("*.whl")
        return made.replace(folder / made.name)


def libraries(machine: str, environ: Mapping[str, str], report: ProgressReport) -> Path:
    """The folder with the C library in both builds, for glibc 2.17 and newer.

    Raises:
        LocalClusterError: It cannot be built.
    """
    checkout.require()
    native = ROOT / "native"
    inputs = [native / "vgpu", native / "tools", native / "Makefile"]
    key = checkout.digest([*inputs, python_packages.LOCKS / "build.txt"], machine)[:20]
    cache = cache_folder(environ)
    folder = cache / "native" / f"{machine}-{key}"
    if not folder.is_dir():
        tools = python_packages.build_tools(environ, report)
        with exclusive(folder.with_suffix(".lock"), lambda: None):
            report.step(f"building the C library for {machine}")
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            command = ["make", "-s", "-C", str(native), "released", f"MACHINE={machine}"]
            command += [f"PYTHON={sys.executable}", f"OUT={partial}", f"-j{os.cpu_count()}"]
            zig = {name: str(cache / "zig") for name in _ZIG_CACHES}
            settings = {"PYTHONPATH": str(tools), **zig}
            _run(command, {**environ, **settings}, "the C library cannot be built")
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
    return folder


def audit(wheel: Path, environ: Mapping[str, str], report: ProgressReport) -> str:
    """What auditwheel says of a platform wheel.

    Raises:
        LocalClusterError: It refuses the wheel.
    """
    tools = python_packages.build_tools(environ, report)
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    settings = {"PYTHONPATH": str(tools)}
    return _run(command, {**environ, **settings}, f"auditwheel cannot read {wheel.name}")


def _run(command: list[str], environment: Mapping[str, str], problem: str) -> str:
    """What a command says, on both outputs."""
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    said = f"{result.stdout}{result.stderr}"
    if result.returncode != 0:
        raise LocalClusterError(f"{problem}: {said.strip()[-1000:]}")
    return said
