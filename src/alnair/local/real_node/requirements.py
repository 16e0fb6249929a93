"""Whether a real node can run here; asked before anything is changed."""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from alnair.local.errors import InvalidArgumentError, LocalClusterError
from alnair.local.layout import Layout, cache_folder
from alnair.local.programs import binaries
from alnair.local.real_node import cgroups, fake_gpu
from alnair.local.real_node.settings import HIDDEN
from alnair.local.report import NO_REPORT

#: Programs that must be on PATH, with the package of Debian and Ubuntu that has them.
TOOLS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
    "nft": "nftables",
    "cc": "gcc",
    "ldd": "libc-bin",
    "make": "make",
}
#: To build runc.
TOOLS_TO_BUILD = {"pkg-config": "pkg-config"}
_TRIAL = """
ip link add trial0 type veth peer name trial1
nft add table ip trial
mount -t tmpfs trial /mnt
mkdir /mnt/lower /mnt/upper
mount -t overlay -o lowerdir=/mnt/upper:/mnt/lower trial /mnt/lower
"""
_SECCOMP = ("/usr/include/seccomp.h", "/usr/local/include/seccomp.h")


def missing(
    *,
    builds: bool,
    which: Callable[[str], str | None] = shutil.which,
    exists: Callable[[str], bool] = os.path.exists,
) -> dict[str, str]:
    """What this machine lacks for a real node: name → the package that has it.

    Args:
        builds: Whether runc has to be built yet.
        which: Finds a program.
        exists: Whether a file is there.
    """
    wanted = TOOLS | (TOOLS_TO_BUILD if builds else {})
    lacking = {tool: package for tool, package in wanted.items() if not which(tool)}
    if builds and not any(exists(path) for path in _SECCOMP):
        lacking["seccomp.h"] = "libseccomp-dev"
    return lacking


def problem(
    folders: Iterable[Path],
    *,
    builds: bool,
    system: str | None = None,
    user: int | None = None,
    which: Callable[[str], str | None] = shutil.which,
    exists: Callable[[str], bool] = os.path.exists,
) -> str | None:
    """Why no real node can run here, in a sentence with the fix; None where it can.

    Args:
        folders: The folders that the node must see: of the clusters, programs and sources.
        builds: Whether runc has to be built yet.
        system: The operating system; None: this one.
        user: The user's number; None: this one.
        which: Finds a program.
        exists: Whether a file is there.
    """
    system = system or platform.system()
    if system != "Linux":
        return f"a real node needs Linux, this is {system}: leave out --real-node"
    if (os.geteuid() if user is None else user) != 0:
        return "a real node needs root (containers, namespaces): run the command with sudo"
    for folder in folders:
        for hidden in HIDDEN:
            if folder.resolve().is_relative_to(hidden.resolve()):
                return (
                    f"{folder} lies in {hidden}, which a real node replaces by its own:"
                    " set ALNAIR_STATE and ALNAIR_CACHE to other folders, such as in /root"
                )
    lacking = missing(builds=builds, which=which, exists=exists)
    if lacking:
        packages = " ".join(sorted({*lacking.values()}))
        return (
            f"a real node needs {', '.join(lacking)}, not found here:"
            f" install them (Debian, Ubuntu: apt-get install {packages})"
        )
    if not any(os.access(hierarchy, os.W_OK) for hierarchy in cgroups.hierarchies()):
        return f"a real node needs control groups that it can write to, mounted in {cgroups.ROOT}"
    return fake_gpu.missing_sources() or _trial()


def _trial() -> str | None:
    """Tries what the kernel or a container around us may refuse, in namespaces that end with it."""
    command = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "/bin/sh"]
    result = subprocess.run([*command, "-euc", _TRIAL], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    said = " ".join(result.stderr.split())
    return (
        f"a real node needs namespaces, overlay mounts, veth and nftables, and this machine refuses"
        f" one of them ({said}): in a container, run that with all privileges"
    )


def refusal(layout: Layout, environ: Mapping[str, str]) -> str | None:
    """Why no real node can run on this machine, in a sentence with the fix; None where it can."""
    folders = [layout.folder, cache_folder(environ), fake_gpu.SOURCES]
    return problem(folders, builds=builds(environ))


def builds(environ: Mapping[str, str]) -> bool:
    """Whether runc has to be built yet, which has C in it."""
    _, modules = binaries.locate(["runc"], environ, NO_REPORT)
    return bool(modules)


def check(layout: Layout, environ: Mapping[str, str], components: Collection[str]) -> None:
    """Refuses a machine, or a choice of components, with which no real node can run.

    Raises:
        LocalClusterError: None can.
    """
    if "kube-controller-manager" not in components:
        raise InvalidArgumentError(
            "a real node needs kube-controller-manager: name it in --components too"
        )
    if said := refusal(layout, environ):
        raise LocalClusterError(said)
