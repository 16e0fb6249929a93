"""The checkout that wheels and images are made of: its version, its time, its digest."""

import hashlib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from alnair.built_from import ROOT, git
from alnair.local.errors import LocalClusterError

#: All that a wheel or an image depends on, below the checkout.
INPUTS: Final = (
    *("src/alnair", "native/vgpu", "native/tools", "native/Makefile", "deploy/images"),
    *("deploy/wheel_hook.py", "requirements", "pyproject.toml", "LICENSE", "README.md"),
)
#: 1980, the first year that a zip file can tell: for a checkout without git.
_NO_TIME: Final = 315532800


def require(root: Path = ROOT) -> None:
    """Refuses to go on where there is no checkout.

    Raises:
        LocalClusterError: This Alnair was installed from a wheel.
    """
    if not (root / "deploy" / "images" / "Containerfile").is_file():
        raise LocalClusterError(
            "Alnair's wheels and images are made from its repository, and this Alnair was installed"
            " from a wheel: run the command from a clone of it"
        )


def digest(paths: Iterable[Path], *words: str) -> str:
    """Tells contents apart: of files, and of folders with all that is below, and of words."""
    sha = hashlib.sha256("\n".join(words).encode())
    for path in paths:
        files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
        for file in files:
            if "__pycache__" not in file.parts:
                sha.update(f"{file.relative_to(path.parent)}\n".encode())
                sha.update(hashlib.sha256(file.read_bytes()).digest())
    return sha.hexdigest()


def content(root: Path = ROOT) -> str:
    """Tells checkouts apart by what goes into a wheel or an image."""
    return digest(root / name for name in INPUTS)


def revision(root: Path = ROOT) -> str:
    """The whole commit; "" without git."""
    return git(root, "rev-parse", "HEAD")


def is_changed(root: Path = ROOT) -> bool:
    """Whether something that goes into a wheel or an image differs from the commit."""
    return bool(git(root, "status", "--porcelain", "--", *INPUTS))


def commit(root: Path = ROOT) -> str:
    """The commit as `alnair --version` tells it; "" without git."""
    found = revision(root)[:12]
    return f"{found}+" if found and is_changed(root) else found


def tag(root: Path = ROOT) -> str:
    """The version as a tag of images, and as a version of a Helm chart.

    `0.1.0-g19c2302fe8dc` is a commit. Where files differ from it, a digest of them comes behind.
    """
    found = revision(root)[:12]
    parts = [f"g{found}"] if found else []
    parts += [f"x{content(root)[:8]}"] if not found or is_changed(root) else []
    return f"{version('alnair')}-{'.'.join(parts)}"


def time(root: Path = ROOT) -> int:
    """When the commit was made, in seconds since 1970: the time of all files that are made."""
    said = git(root, "log", "-1", "--format=%ct")
    return int(said) if said else _NO_TIME
