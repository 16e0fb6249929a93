"""What is checked before anything is begun: the machine, the disk, the programs."""

import os
import platform
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from alnair.local import binaries, build, toolchain
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder, clusters_folder
from alnair.local.report import Report

#: What a cluster may write before anybody looks again: etcd's data and logs, in MiB.
RUNNING_MIB = 512
#: What the modules, the Go build cache and the programs take from nothing, in MiB.
BUILDING_MIB = 4096


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
    present = folder
    while not present.exists():
        present = present.parent
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


def check(environ: Mapping[str, str]) -> None:
    """Checks what holds for every cluster.

    Raises:
        LocalClusterError: None can run here.
    """
    check_machine(platform.system(), struct.calcsize("P") * 8)
    check_space(clusters_folder(environ), RUNNING_MIB, "run a cluster")


def programs(wanted: Sequence[str], environ: Mapping[str, str], report: Report) -> dict[str, Path]:
    """Has all programs at hand, building those that are missing.

    Returns:
        The path of each program.

    Raises:
        LocalClusterError: One can neither be found nor built.
    """
    found, missing = binaries.locate(wanted, environ, report)
    if missing:
        check_space(cache_folder(environ), BUILDING_MIB, "build Kubernetes")
        go = toolchain.go(environ, report)
        for module in missing:
            build.build(go, module, environ, report)
        found, _ = binaries.locate(wanted, environ, report)
    return found
