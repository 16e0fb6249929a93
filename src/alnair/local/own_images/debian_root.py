"""A folder in which programs of Debian's packages run, and an image of a part of it.

The packages are unpacked and not configured, which takes half a minute less; what their scripts
would set up, and programs here need, is in `_LINKS`.
"""

import hashlib
import json
import os
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from alnair.local.errors import LocalClusterError

_MERGED: Final = ("bin", "lib", "lib64", "sbin")
#: As `update-alternatives` would link them.
_LINKS: Final = {
    "usr/lib/{triplet}/libblas.so.3": "blas/libblas.so.3",
    "usr/lib/{triplet}/liblapack.so.3": "lapack/liblapack.so.3",
    "usr/bin/awk": "mawk",
    "usr/bin/sh": "dash",
}
#: The root's own /proc and /dev, and nobody else sees them.
_ENTER: Final = """
mount --rbind /dev "$0/dev"
mount -t proc proc "$0/proc"
exec chroot "$0" "$@"
"""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def unpack(packages: Iterable[Path], root: Path, triplet: str) -> None:
    """Unpack packages into a folder, so that programs run in it.

    Args:
        packages: Files of packages, with all that they need.
        root: The folder; it is made.
        triplet: Of the processor, as folders of libraries are called.
    """
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda one: _unpack(one, root), packages))
    for name, target in _LINKS.items():
        link = root / name.format(triplet=triplet)
        if not link.is_symlink() and not link.exists() and (link.parent / target).exists():
            link.symlink_to(target)
    for folder in ("dev", "proc", "tmp", "root"):
        (root / folder).mkdir(exist_ok=True)


def _unpack(package: Path, root: Path) -> None:
    # `dpkg-deb --extract` would replace the links of `_MERGED` by folders.
    options = ["--keep-directory-symlink", "--exclude=./usr/share/doc", "--exclude=./usr/share/man"]
    files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", *options, "-C", root], stdin=files.stdout, check=True)
    if files.wait() != 0:
        raise LocalClusterError(f"{package.name} cannot be unpacked: is the disk full?")


def run(
    root: Path, command: Sequence[str], what: str, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program in the folder, and return what it wrote.

    Args:
        root: The folder.
        command: A path in the folder, and arguments.
        what: What is done, for the message.
        environment: Variables besides PATH.

    Raises:
        LocalClusterError: It failed; the end of what it wrote is in the message.
    """
    enter = ["unshare", "--mount", "--propagation=private", "--", "/bin/sh", "-ec", _ENTER]
    done = subprocess.run(
        [*enter, str(root), *command],
        env={"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = f"{done.stdout}\n{done.stderr}".strip()[-1500:]
        raise LocalClusterError(f"{what} failed: {said}")
    return done.stdout


def libraries(root: Path, programs: Iterable[str]) -> set[str]:
    """Return the shared libraries that programs in the folder need, by path without a slash."""
    listed = run(root, ["/usr/bin/ldd", *(f"/{one}" for one in programs)], "looking for libraries")
    found = set()
    for line in listed.splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == "=>" and words[2].startswith("/"):
            found.add(words[2][1:])
        elif words and words[0].startswith("/") and len(words) == 2:
            found.add(words[0][1:])
    return found


def with_targets(root: Path, name: str) -> set[str]:
    """A path and what it is a link to, within the root, with folders' own links resolved."""
    found = set()
    path = root / name
    while True:
        path = root / path.parent.resolve().relative_to(root.resolve()) / path.name
        found.add(str(path.relative_to(root)))
        if not path.is_symlink():
            return found
        target = path.readlink()
        path = root / str(target)[1:] if target.is_absolute() else path.parent / target


def write_image(
    root: Path, names: Iterable[str], image: str, environment: Mapping[str, str], archive: Path
) -> None:
    """Write an image of files of the folder, as an archive that containerd and docker read.

    Args:
        root: The folder.
        names: Files and folders in it, without the first slash.
        image: Name, with a tag.
        environment: Variables of containers.
        archive: Where to write it.
    """
    work = archive.with_suffix(".layer")
    listed = work.with_suffix(".names")
    listed.write_text("\n".join(sorted(names)))
    _tar(root, listed, work)
    with work.open("rb") as file:
        layer = hashlib.file_digest(file, "sha256").hexdigest()
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
        "os": "linux",
        "config": {"Env": [f"{key}={value}" for key, value in environment.items()]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }
    written = work.with_suffix(".json")
    written.write_text(json.dumps(config))
    manifest = work.with_suffix(".manifest")
    listing = [{"Config": "config.json", "RepoTags": [image], "Layers": ["layer.tar"]}]
    manifest.write_text(json.dumps(listing))
    with tarfile.open(archive, "w") as tar:
        for path, name in ((work, "layer.tar"), (written, "config.json")):
            tar.add(path, name)
        tar.add(manifest, "manifest.json")
    for path in (work, listed, written, manifest):
        path.unlink()


def _tar(root: Path, listed: Path, layer: Path) -> None:
    options = ["--sort=name", "--mtime=@315532800", "--owner=0", "--group=0", "--numeric-owner"]
    options += ["--no-recursion"]
    where = [f"--directory={root}", f"--file={layer}", f"--files-from={listed}"]
    subprocess.run(["tar", "--create", *options, *where], check=True)
