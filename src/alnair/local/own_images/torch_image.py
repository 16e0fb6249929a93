"""An image with PyTorch for examples and tests, of pip's packages and this very Python.

It runs on CPUs: what is for GPUs alone, nine tenths, is left out (`stand_ins`). It is the image
`alnair.local/python:local` with one layer more. No registry is asked for it. Bytecode is in it for
all modules: a training starts Python twice in each worker, and again at each change.
"""

import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.own_images import kept_archives, python_packages, stand_ins
from alnair.local.own_images.images import Built, described
from alnair.local.real_node import fake_gpu, image_archive, images
from alnair.local.real_node.image_archive import Image, Layer
from alnair.local.report import ProgressReport

VERSION: Final = "2.13.0"
NAME: Final = f"alnair.local/torch:{VERSION}"
#: What that release needs, but for the libraries of CUDA.
_PACKAGES: Final = (
    f"torch=={VERSION}",
    *("numpy==2.3.4", "typing_extensions==4.15.0", "sympy==1.14.0", "mpmath==1.3.0"),
    *("networkx==3.5", "jinja2==3.1.6", "markupsafe==3.0.3", "filelock==3.20.0"),
    *("fsspec==2025.10.0", "setuptools==80.9.0"),
)
#: Libraries of PyTorch with kernels for GPUs.
_CUDA: Final = "libtorch_cuda.so"
_MORE_CUDA: Final = ("libtorch_cuda_linalg.so", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so")
#: What no training reads: a third of the files.
_FOLDERS: Final = ("include", "test", "tests", "share")
_SUFFIXES: Final = (".a", ".pyi", ".h", ".hpp", ".cuh", ".cmake")
_RUN: Final = (
    "#!/usr/bin/python3\nimport sys\nfrom torch.distributed.run import main\nsys.exit(main())\n"
)
#: Images of this and other checkouts that stay, those used last, 820 MB each.
_KEPT: Final = 2
_UNCHECKED: Final = py_compile.PycInvalidationMode.UNCHECKED_HASH
_TRIAL: Final = """
import torch.distributed.run
layer = torch.nn.Linear(2, 1)
layer(torch.ones(2)).backward()
torch.optim.SGD(layer.parameters()).step()
torch.save(layer.state_dict(), "/dev/null")
"""


def build(environ: Mapping[str, str], report: ProgressReport) -> Built:
    """Makes the image, unless the cache has it.

    Args:
        environ: Names the cache folder.
        report: Told what is going on: 560 MB are fetched.

    Raises:
        LocalClusterError: A package cannot be fetched.
    """
    sources = fake_gpu.SOURCES / "workload"
    folder = cache_folder(environ) / "training-images"
    archive = folder / f"torch-{VERSION}-{key()}.tar"
    if not archive.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        waiting = f"waiting for another build of {NAME} to end"
        with exclusive(folder / "torch.lock", lambda: report.step(waiting)):
            if not archive.is_file():
                _build(sources, archive, report)
    kept_archives.note_use(archive)
    return described(archive)


def key() -> str:
    """Tells images apart by what they are made from: by Python itself, whose environment it is not.

    So a fresh checkout finds the image of another one.
    """
    made_by = [_digest(Path(one)) for one in (__file__, stand_ins.__file__, images.__file__)]
    python = f"{sys.version} {Path(sys.executable).resolve()} {sys.base_prefix}"
    text = f"{made_by} {python} {images.linked(Path('/bin/sh'))}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _build(sources: Path, archive: Path, report: ProgressReport) -> None:
    work = archive.with_suffix(".work")
    shutil.rmtree(work, ignore_errors=True)
    packages = work / "packages"
    report.step(f"fetching PyTorch {VERSION}, 560 MB")
    python_packages.install(packages, _PACKAGES)
    report.step(f"making the image {NAME}")
    stand_ins.replace(packages / "torch" / "lib", _CUDA, _MORE_CUDA)
    _prune(packages)
    _try(packages)
    _compile_packages(packages)
    common, python = images.python_layers(sources)
    layer = _layer(packages, python, work)
    partial = archive.with_suffix(".partial")
    image_archive.write([Image(NAME, (common, python, layer), ("/usr/bin/python3",))], partial)
    partial.replace(archive)
    shutil.rmtree(work)
    for old in kept_archives.unused(archive.parent.glob("torch-*.tar"), _KEPT):
        old.unlink()


def _try(packages: Path) -> None:
    """Refuses what would not load in a container either."""
    command = [sys.executable, "-B", "-c", _TRIAL]
    environment = {"PYTHONPATH": str(packages), "PATH": os.environ.get("PATH", "")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip()[-500:] or f"it ended with {done.returncode}"
        raise LocalClusterError(f"{NAME} cannot be made, PyTorch does not start: {said}")


def _prune(packages: Path) -> None:
    for top in packages.iterdir():
        for name in _FOLDERS:
            shutil.rmtree(top / name, ignore_errors=True)
    for path in packages.rglob("*"):
        if path.suffix in _SUFFIXES and path.is_file():
            path.unlink()
    for name in ("tests", "test"):
        for folder in list(packages.rglob(name)):
            shutil.rmtree(folder, ignore_errors=True)


def _compile_packages(packages: Path) -> None:
    """Adds bytecode that holds whatever the time of its source: in an image that is 1970."""
    options = ["-q", "-j2", "--invalidation-mode=unchecked-hash", f"-s{packages}"]
    command = [sys.executable, "-m", "compileall", *options, str(packages)]
    # What cannot be compiled is for another Python, and nobody loads it.
    subprocess.run(command, capture_output=True, check=False)


def _layer(packages: Path, python: Layer, work: Path) -> Layer:
    """The layer of the packages, of bytecode for Python's own library, and of `torchrun`."""
    site = _site_packages()
    copied = {f"{site}/{path.relative_to(packages)}": path for path in _files(packages)}
    for path in _outside(packages):
        copied.setdefault(str(path)[1:], path.resolve())
    for name, path in python.copied.items():
        if path.suffix == ".py":
            made = work / "library" / f"{name}c"
            py_compile.compile(str(path), str(made), f"/{name}", True, invalidation_mode=_UNCHECKED)
            there = Path(name)
            cached = f"{there.stem}.{sys.implementation.cache_tag}.pyc"
            copied[str(there.parent / "__pycache__" / cached)] = made
    run = work / "torchrun"
    run.write_text(_RUN)
    run.chmod(0o755)
    copied["usr/local/bin/torchrun"] = run
    return Layer(copied, {}, {})


def _site_packages() -> str:
    """Where Python looks for packages outside of this virtual environment, without the first slash.

    It is asked itself: Debian's looks elsewhere than a virtual environment of it does.
    """
    interpreter = Path(sys.executable).resolve()
    ask = "import sysconfig; print(sysconfig.get_path('platlib'))"
    said = subprocess.run([interpreter, "-Ic", ask], capture_output=True, text=True, check=True)
    return said.stdout.strip()[1:]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _outside(packages: Path) -> set[Path]:
    """The libraries of this machine that the packages' own are linked with."""
    found: set[Path] = set()
    for path in packages.rglob("*.so*"):
        found.update(one for one in images.linked(path) if not one.is_relative_to(packages))
    return found
