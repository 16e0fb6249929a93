"""The images `alnair` and `alnair-agent`, as archives in the cache folder."""

import hashlib
import json
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from alnair.built_from import ROOT
from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.own_images import (
    base_images,
    checkout,
    kept_archives,
    python_packages,
    requirements,
    wheel,
)
from alnair.local.own_images.buildah import Buildah
from alnair.local.report import ProgressReport

#: The name before the tag is the registry's part; nothing is fetched from one.
REGISTRY: Final = "alnair.io"
NAMES: Final = ("alnair", "alnair-agent")
_CONTAINERFILE: Final = ROOT / "deploy" / "images" / "Containerfile"
#: Archives of other checkouts that stay, those used last: for upgrades from them, and for who runs
#: them now.
_KEPT: Final = 3
#: Of all files, 1980: so a layer that does not change is the same one for all commits, be it built
#: now or taken from the cache. A label has the time of the commit.
_FILES_TIME: Final = 315532800
#: Each build leaves layers, which the next one of the same packages begins with: 20 MB
#: each on an overlay, many times that where the file system can carry none (vfs).
_MOST_MEGABYTES: Final = 4000


@dataclass(frozen=True)
class Built:
    """An image that is there.

    Attributes:
        name: With the tag, as a pod names it.
        archive: To be imported by `ctr --namespace=k8s.io images import`, or `docker load`.
        digest: Of its configuration, which names all layers by theirs: the same image, the same.
        size: Of all layers, in bytes.
    """

    name: str
    archive: Path
    digest: str
    size: int


def names(root: Path = ROOT) -> list[str]:
    """The names of this checkout's images, with the tag, built or not."""
    tag = checkout.tag(root)
    return [f"{REGISTRY}/{name}:{tag}" for name in NAMES]


def build(
    environ: Mapping[str, str], report: ProgressReport, *, machine: str | None = None
) -> list[Built]:
    """Builds both images, unless the cache has them already.

    Args:
        environ: The user's environment: where the cache is.
        report: Told what is going on.
        machine: The processor to build for, as the kernel calls it; None: this one.

    Raises:
        LocalClusterError: They cannot be built; the message says why and what to do.
    """
    checkout.require()
    machine = machine or platform.machine()
    folder = cache_folder(environ) / "own-images"
    tag, time = checkout.tag(), checkout.time()
    key = checkout.digest([], checkout.content(), tag, str(time), machine)[:20]
    done = folder / "archives" / f"{tag}-{requirements.ARCHITECTURES[machine]}-{key}"
    if not done.is_dir():
        if said := requirements.problem():
            raise LocalClusterError(said)
        with exclusive(folder / "lock", lambda: report.step("waiting for another build to end")):
            if not done.is_dir():
                _build(machine, tag, time, folder, done, environ, report)
    kept_archives.note_use(done)
    return [described(done / f"{name}.tar") for name in NAMES]


def described(archive: Path) -> Built:
    """What an archive holds."""
    with tarfile.open(archive) as tar:
        manifest = json.loads(_read(tar, "manifest.json"))[0]
        configuration = _read(tar, manifest["Config"])
        size = sum(tar.getmember(layer).size for layer in manifest["Layers"])
    digest = hashlib.sha256(configuration).hexdigest()
    return Built(manifest["RepoTags"][0], archive, f"sha256:{digest}", size)


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def _build(
    machine: str,
    tag: str,
    time: int,
    folder: Path,
    done: Path,
    environ: Mapping[str, str],
    report: ProgressReport,
) -> None:
    architecture = requirements.ARCHITECTURES[machine]
    buildah = _storage(folder, architecture, environ, report)
    partial = done.with_suffix(".partial")
    context = folder / "context"
    for old in (partial, context):
        shutil.rmtree(old, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in ("deploy/images", "requirements"):
        shutil.copytree(ROOT / name, context / name)
    report.step("building the wheels")
    for kind in (None, machine):
        wheel.build(kind, context / "dist", environ, report)
    for name in NAMES:
        packages = python_packages.wheels(name, machine, environ, report)
        report.step(f"building the image {name} for {architecture}")
        image = f"{REGISTRY}/{name}:{tag}"
        buildah.build(
            context,
            image,
            file=_CONTAINERFILE,
            platform=f"linux/{architecture}",
            time=_FILES_TIME,
            target=name,
            arguments={
                "BUILDPLATFORM": f"linux/{requirements.ARCHITECTURES[platform.machine()]}",
                "VERSION": tag,
                "REVISION": checkout.revision() or "unknown",
                "CREATED": datetime.fromtimestamp(time, UTC).isoformat(),
                "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": "/wheels",
            },
            mounts={packages: "/wheels"},
        )
        buildah.save(image, partial / f"{name}.tar")
    shutil.rmtree(context)
    partial.rename(done)
    for old in kept_archives.unused(done.parent.iterdir(), _KEPT):
        shutil.rmtree(old)


def _storage(
    folder: Path, architecture: str, environ: Mapping[str, str], report: ProgressReport
) -> Buildah:
    """The storage for images of a processor, with the base images in it."""
    # With other packages in the layers below ours, all else in the storage is of no more use.
    key = checkout.digest([Path(base_images.__file__), *python_packages.LOCKS.glob("image-*.txt")])
    storage = Buildah(folder / f"storage-{architecture}", environ)
    mark = storage.folder / "made-from"
    if mark.is_file() and mark.read_text() == key and _megabytes(storage.folder) < _MOST_MEGABYTES:
        return storage
    shutil.rmtree(storage.folder, ignore_errors=True)
    ours = requirements.ARCHITECTURES[platform.machine()]
    wanted = {base_images.FINAL: architecture, base_images.BUILD: ours}
    for name, of in wanted.items():
        report.step(f"making {name} ({of}) of Debian's packages")
        context = storage.folder / "base"
        shutil.rmtree(context, ignore_errors=True)
        context.mkdir(parents=True)
        base_images.write(name, of, context / "files.tar", environ)
        file = context / "Containerfile"
        file.write_text(base_images.CONTAINERFILE.format(file="files.tar"))
        storage.build(context, name, file=file, platform=f"linux/{of}", time=0)
        shutil.rmtree(context)
    mark.write_text(key)
    return storage


def _megabytes(folder: Path) -> int:
    said = subprocess.run(["du", "-sm", folder], capture_output=True, text=True, check=False)
    return int(said.stdout.split()[0])
