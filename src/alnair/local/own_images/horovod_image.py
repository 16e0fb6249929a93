"""An image with Elastic Horovod and PyTorch, to train on a machine without GPUs and registries.

The last release of Horovod cannot be built against a newer PyTorch than that of Debian. It is
compiled in a folder of packages (`debian_root`), so nothing is installed on this machine. The image
has what is needed to train, and an ssh server, through which the launcher reaches the workers.
"""

import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from alnair.built_from import ROOT
from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.own_images import (
    checkout,
    debian_packages,
    debian_root,
    kept_archives,
    requirements,
)
from alnair.local.own_images.images import Built, described
from alnair.local.report import ProgressReport

HOROVOD: Final = "0.28.1"
NAME: Final = f"alnair.local/horovod:{HOROVOD}"
#: Images of this and other checkouts that stay, those used last, 315 MB each.
_KEPT: Final = 2
_RUN: Final = (
    *("base-files", "bash", "ca-certificates", "coreutils", "dash", "grep", "libc-bin", "procps"),
    *("openssh-client", "openssh-server", "python3", "python3-torch", "python3-numpy"),
    *("python3-cloudpickle", "python3-psutil", "python3-yaml", "python3-packaging"),
    *("python3-cffi", "python3-typing-extensions"),
    # To install it.
    *("patchelf", "python3-pip", "python3-setuptools", "python3-wheel"),
)
_BUILD: Final = (*("cmake", "g++", "libtorch-dev", "make", "pybind11-dev", "python3-dev"),)
_OPTIONS: Final = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_CPU_OPERATIONS": "GLOO",
    "CC": "gcc",
    "CXX": "/tmp/c++",
    "MAKEFLAGS": "-j2",
}
#: Horovod asks for debugging information and -O3, which takes twice as long.
_COMPILER: Final = '#!/bin/sh\nexec g++ "$@" -g0 -O1\n'
#: The training of the tutorial, also under the names that the original's samples run.
EXAMPLE: Final = ROOT / "examples" / "04-first-elastic-job" / "train.py"
_EXAMPLES: Final = (
    *("examples/train.py", "examples/pytorch_mnist.py"),
    "examples/elastic/pytorch/pytorch_mnist_elastic.py",
)
_PIP: Final = ("/usr/bin/python3", "-m", "pip", "--quiet")
_WHEEL: Final = (*_PIP, "wheel", "--no-index", "--no-deps", "--no-build-isolation")
_INSTALL: Final = (
    *(*_PIP, "install", "--no-index", "--no-deps", "--no-compile"),
    "--break-system-packages",
)
#: What goes into the image, besides shared libraries.
_FOLDERS: Final = ("etc", "examples", "root", "tmp", "usr/lib/openssh", "usr/local", "var/empty")
_PROGRAMS: Final = (
    *(
        "bash",
        "cat",
        "chmod",
        "cp",
        "date",
        "env",
        "grep",
        "head",
        "hostname",
        "id",
        "kill",
        "ls",
        "mkdir",
    ),
    *("nproc", "ps", "python3", "python3.11", "rm", "sed", "sh", "dash", "sleep", "ssh", "tail"),
    *("touch", "true", "uname"),
)
_PYTHON: Final = (
    *("cffi", "cloudpickle", "numpy", "packaging", "psutil", "pycparser", "torch", "torchgen"),
    *("yaml", "typing_extensions.py", "_cffi_backend*.so"),
)
#: PyTorch opens these by name.
_LIBRARIES: Final = ("libtorch*.so*", "libshm*.so*", "libc10*.so*")
#: Folders of Python, PyTorch and NumPy that no training needs.
_UNNEEDED: Final = {
    *("dist-packages/torch/test", "usr/lib/python3.11/dist-packages"),
    *("ensurepip", "idlelib", "include", "lib2to3", "test", "tests", "turtledemo"),
}
_WRITTEN: Final = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\n"
    "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
    "etc/ssh/sshd_config": "UsePAM no\n",
}
#: Debian links PyTorch with OpenCV and FFmpeg, of which it uses nothing: 200 libraries.
_LINKED: Final = ("libav", "libopencv_", "libsw")
#: What a training loads has its bytecode in the image, which goes by no file's time: all are alike.
_LOADED: Final = """
import py_compile, sys
import torch, horovod.torch, horovod.runner.launch, horovod.runner.elastic.driver
import horovod.runner.gloo_run, multiprocessing.spawn, multiprocessing.resource_tracker
assert torch.ones(2).sum() == 2
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
for name in {str(getattr(module, "__file__", "")) for module in [*sys.modules.values()]}:
    if name.endswith(".py"):
        py_compile.compile(name, invalidation_mode=mode)
"""


def problem() -> str | None:
    """Why no image can be made here, in a sentence with the fix; None where it can."""
    lacking = {"unshare": "util-linux", "apt-get": "apt", "dpkg-deb": "dpkg", "tar": "tar"}
    said = [package for tool, package in lacking.items() if not shutil.which(tool)]
    if said:
        return f"the image for Horovod needs {', '.join(said)} (Debian, Ubuntu: apt-get install)"
    return requirements.problem()


def build(environ: Mapping[str, str], report: ProgressReport) -> Built:
    """Build the image, unless the cache has it.

    Args:
        environ: The user's environment: where the cache is.
        report: Told what is going on.

    Raises:
        LocalClusterError: It cannot be built; the message says why and what to do.
    """
    made_from = [Path(__file__), Path(debian_root.__file__), EXAMPLE]
    key = checkout.digest(made_from, platform.machine())[:16]
    folder = cache_folder(environ) / "training-images"
    archive = folder / f"horovod-{HOROVOD}-{key}.tar"
    if not archive.is_file():
        if said := problem():
            raise LocalClusterError(said)
        with exclusive(folder / "lock", lambda: report.step("waiting for another build to end")):
            if not archive.is_file():
                _build(folder / "horovod-work", archive, environ, report)
    kept_archives.note_use(archive)
    return described(archive)


def _build(work: Path, archive: Path, environ: Mapping[str, str], report: ProgressReport) -> None:
    machine = platform.machine()
    triplet, wheels = f"{machine}-linux-gnu", archive.parent
    wheel = next(wheels.glob(f"horovod-{HOROVOD}-*_{machine}.whl"), None)
    root = work / "root"
    shutil.rmtree(work, ignore_errors=True)
    try:
        report.step("fetching Debian's PyTorch for the image of Horovod")
        names = _RUN if wheel else (*_RUN, *_BUILD)
        of = requirements.ARCHITECTURES[machine]
        fetched = debian_packages.fetch(names, of, work, environ, complete=True)
        debian_root.unpack(fetched, root, triplet)
        for name, text in _WRITTEN.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        debian_root.run(root, ["/usr/sbin/ldconfig"], "listing libraries")
        if wheel is None:
            wheel = _compiled(work, root, wheels, report)
        shutil.copy(wheel, root / "tmp")
        debian_root.run(root, [*_INSTALL, f"/tmp/{wheel.name}"], "installing Horovod")
        (root / "tmp" / wheel.name).unlink()
        report.step("writing the image of Horovod")
        _slimmed(root, triplet)
        for name in _EXAMPLES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(EXAMPLE, root / name)
        (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        debian_root.run(root, ["/usr/bin/python3", "-c", _LOADED], "loading Horovod")
        partial = archive.with_suffix(".partial")
        variables = {"PATH": debian_root.PATH, "LANG": "C.UTF-8"}
        debian_root.write_image(root, _chosen(root, triplet), NAME, variables, partial)
        partial.rename(archive)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for old in kept_archives.unused(wheels.glob("horovod-*.tar"), _KEPT):
        old.unlink()


def _compiled(work: Path, root: Path, wheels: Path, report: ProgressReport) -> Path:
    """Horovod as a wheel, compiled in the root from its source on PyPI."""
    report.step(f"compiling Horovod {HOROVOD} for PyTorch")
    source = work / "source"
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    wanted = ["--no-deps", "--no-binary=horovod", f"horovod=={HOROVOD}"]
    done = subprocess.run(
        [*command, f"--dest={source}", *wanted], capture_output=True, text=True, check=False
    )
    found = list(source.glob("*.tar.gz"))
    if not found:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LocalClusterError(
            f"Horovod's source cannot be fetched ({said}): check the network and pip's settings"
        )
    shutil.copy(found[0], root / "tmp")
    compiler = root / "tmp" / "c++"
    compiler.write_text(_COMPILER)
    compiler.chmod(0o755)
    made = ["--wheel-dir=/tmp", f"/tmp/{found[0].name}"]
    debian_root.run(root, [*_WHEEL, *made], "compiling Horovod", _OPTIONS)
    for path in (compiler, root / "tmp" / found[0].name):
        path.unlink()
    (built,) = (root / "tmp").glob("*.whl")
    wheel = wheels / built.name
    partial = wheel.with_suffix(".partial")
    shutil.move(built, partial)
    partial.rename(wheel)
    return wheel


def _slimmed(root: Path, triplet: str) -> None:
    """Have PyTorch load only libraries that it uses."""
    (library,) = (root / "usr/lib" / triplet).glob("libtorch_cpu.so.*.*.*")
    name = f"/{library.relative_to(root)}"
    needed = debian_root.run(root, ["/usr/bin/patchelf", "--print-needed", name], "reading PyTorch")
    unused = [one for one in needed.split() if one.startswith(_LINKED)]
    options = [word for one in unused for word in ("--remove-needed", one)]
    debian_root.run(root, ["/usr/bin/patchelf", *options, name], "slimming PyTorch")


def _chosen(root: Path, triplet: str) -> set[str]:
    """The files of the image, by path without a slash."""
    python = "usr/lib/python3/dist-packages"
    wanted = [root / name for name in _FOLDERS]
    wanted += [root / "usr/bin" / name for name in _PROGRAMS]
    wanted += [root / "usr/sbin/sshd", root / "usr/lib/python3.11"]
    for name in _PYTHON:
        wanted += (root / python).glob(name)
    for name in _LIBRARIES:
        wanted += (root / "usr/lib" / triplet).glob(name)
    found = {"bin", "lib", "lib64", "sbin", "usr/lib64", "dev", "proc"}
    for path in wanted:
        inside = [path, *path.rglob("*")] if path.is_dir() else [path]
        for one in inside:
            inner = one.relative_to(root)
            if one.suffix == ".a" or inner.match("torch/bin/test_*"):
                continue
            if not any(f"/{name}/" in f"/{inner}/" for name in _UNNEEDED):
                found.add(str(inner))
    linked = [one for one in sorted(found) if _is_program(root / one)]
    for library in debian_root.libraries(root, linked):
        found |= debian_root.with_targets(root, library)
    for name in ("dl.so.2", "m.so.6", "pthread.so.0", "rt.so.1"):
        found.add(f"usr/lib/{triplet}/lib{name}")
    return {one for one in found if (root / one).exists() or (root / one).is_symlink()}


def _is_program(path: Path) -> bool:
    """Whether it is something that is linked with libraries."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
