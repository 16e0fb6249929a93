"""What the machine must have for Alnair's images to be made; asked before anything is changed."""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from typing import Final

#: Programs that must be on PATH, with the package of Debian and Ubuntu that has them.
TOOLS: Final = {
    "buildah": "buildah",
    "unshare": "util-linux",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "make": "make",
    "nm": "binutils",
}
#: Whose packages the base images are made of; Debian has it installed, Ubuntu has not.
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: Processors, as the kernel calls them and as images do.
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def missing(
    which: Callable[[str], str | None] = shutil.which,
    exists: Callable[[str], bool] = os.path.exists,
) -> dict[str, str]:
    """What this machine lacks for making images: name → the package that has it.

    Args:
        which: Finds a program.
        exists: Whether a file is there.
    """
    lacking = {tool: package for tool, package in TOOLS.items() if not which(tool)}
    if not exists(KEYRING):
        lacking["Debian's keys"] = "debian-archive-keyring"
    return lacking


def _trial() -> str | None:
    """Tries what a container around us may refuse."""
    own = ["unshare", "--mount", "--propagation=private", "--"]
    command = [*own, "mount", "-t", "tmpfs", "trial", "/mnt"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    said = " ".join(result.stderr.split())
    return f"images need mounts, which this machine refuses ({said}): in a container, allow them"


def problem(
    *,
    machine: str | None = None,
    user: int | None = None,
    which: Callable[[str], str | None] = shutil.which,
    exists: Callable[[str], bool] = os.path.exists,
    trial: Callable[[], str | None] = _trial,
) -> str | None:
    """Why no image can be made here, in a sentence with the fix; None where they can.

    Args:
        machine: The processor; None: this one.
        user: The user's number; None: this one.
        which: Finds a program.
        exists: Whether a file is there.
        trial: Tries mounts, as the last.
    """
    machine = machine or platform.machine()
    if platform.system() != "Linux" or machine not in ARCHITECTURES:
        return f"images are made on Linux on x86_64 or aarch64, and this is {machine}"
    lacking = missing(which, exists)
    if "apt-get" in lacking or "dpkg-deb" in lacking:
        return "the base images are made by apt-get and dpkg-deb: run it on Debian 12 or Ubuntu"
    if lacking:
        packages = " ".join(sorted({*lacking.values()}))
        return (
            f"images need {', '.join(lacking)}, not found here:"
            f" install them (Debian, Ubuntu: apt-get install {packages})"
        )
    if (os.geteuid() if user is None else user) != 0:
        return "images are made by root here (buildah with chroot): run the command with sudo"
    return trial()
