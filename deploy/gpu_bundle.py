"""Makes the bundle that tests a GPU without network: `make gpu-bundle` runs it.

One folder below dist/, and the same as .tar.gz: our wheel with the C library, the wheels that it
needs for each Python, the programs of tests/gpu built for glibc 2.17, and `run`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

from alnair.built_from import ROOT, commit
from alnair.cli.progress import Display
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.own_images import python_packages, wheel
from alnair.local.report import ProgressReport

sys.path.insert(0, str(ROOT / "tests"))

from gpu import programs
from native import build

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: Of the tests: all of tests/gpu, and these of tests/native.
_SCRIPTS = ("build.py", "container.py")


def main() -> None:
    """Makes it, and says where it is."""
    parser = argparse.ArgumentParser(prog="make gpu-bundle", description=__doc__)
    parser.add_argument("--machine", choices=wheel.MACHINES, default=os.uname().machine)
    parser.add_argument("--python", action="append", metavar="3.N", help=f"default: {PYTHONS}")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    with Display() as report:
        made = bundle(given.machine, given.python or list(PYTHONS), given.out, report)
    size = made.with_name(f"{made.name}.tar.gz").stat().st_size / 1e6
    print(f"{made}\n{made}.tar.gz  {size:.0f} MB: unpack it beside a GPU, and start ./run in it")


def bundle(machine: str, pythons: list[str], out: Path, report: ProgressReport) -> Path:
    """Makes the folder and the archive; returns the folder.

    Raises:
        LocalClusterError: Something cannot be built or fetched.
    """
    folder = out / f"alnair-gpu-{version('alnair')}-{machine}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "wheels").mkdir(parents=True)
    libraries = wheel.libraries(machine, os.environ, report)
    wheel.build(machine, folder / "wheels", os.environ, report)
    for python in pythons:
        fetched = python_packages.wheels("alnair-agent", machine, os.environ, report, python=python)
        for one in fetched.glob("*.whl"):
            shutil.copy2(one, folder / "wheels")
    native = folder / "build" / "native"
    (native / "proxy").mkdir(parents=True)
    for name in ("libalnair_vgpu.so", "proxy/libcuda.so.1"):
        shutil.copy2(libraries / name, native / name)
    report.step("building the programs of the tests")
    _programs(machine, folder / "build" / "gpu" / "programs", report)
    _scripts(folder)
    about = {"commit": commit() or "unknown", "version": version("alnair")}
    about |= {"machine": machine, "pythons": pythons}
    (folder / "bundle.json").write_text(json.dumps(about) + "\n")
    with tarfile.open(f"{folder}.tar.gz", "w:gz") as archive:
        archive.add(folder, folder.name)
    return folder


def _programs(machine: str, folder: Path, report: ProgressReport) -> None:
    tools = python_packages.build_tools(os.environ, report)
    cache = cache_folder(os.environ)
    zig = {"ZIG_GLOBAL_CACHE_DIR": cache / "zig", "ZIG_LOCAL_CACHE_DIR": cache / "zig"}
    os.environ.update({name: str(path) for name, path in zig.items()}, PYTHONPATH=str(tools))
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.2.17", "-s"]
    for name in programs.SOURCES:
        try:
            programs.compiled(name, folder / name, compiler)
        except RuntimeError as error:
            raise LocalClusterError(str(error)) from error


def _scripts(folder: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.c", "*.h", "unpack.py", "run.sh")
    shutil.copytree(ROOT / "tests" / "gpu", folder / "tests" / "gpu", ignore=ignored)
    native = folder / "tests" / "native"
    shutil.copytree(build.CLIENTS.parent / "sequences", native / "sequences")
    for name in _SCRIPTS:
        shutil.copy2(build.CLIENTS.parent / name, native / name)
    shutil.copy2(ROOT / "LICENSE", folder)
    for name, place in (("unpack.py", "unpack.py"), ("run.sh", "run")):
        shutil.copy2(ROOT / "tests" / "gpu" / name, folder / place)
    (folder / "run").chmod(0o755)


if __name__ == "__main__":
    try:
        main()
    except (LocalClusterError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"make gpu-bundle: {error}")
