"""The two base images, made of Debian's packages under the names that the Containerfile says.

A file system is what the packages unpack to, without any being configured: so no program of the
image runs, and one for another processor is made in the same way. The final base has the packages
of the image of that name, and the build base those and pip.
"""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from alnair.local.own_images import debian_packages

FINAL: Final = "gcr.io/distroless/python3-debian12"
BUILD: Final = "docker.io/library/python:3.11-slim-bookworm"
_LIBRARIES: Final = (
    *("base-files", "netbase", "tzdata", "media-types", "libc6", "libssl3", "libgcc-s1"),
    *("libgomp1", "libstdc++6", "ca-certificates"),
)
_PYTHON: Final = (
    *("libbz2-1.0", "libdb5.3", "libexpat1", "liblzma5", "libsqlite3-0", "libuuid1", "libffi8"),
    *("libncursesw6", "libtinfo6", "zlib1g", "libcom-err2", "libcrypt1", "libgssapi-krb5-2"),
    *("libk5crypto3", "libkeyutils1", "libkrb5-3", "libkrb5support0", "libnsl2", "libreadline8"),
    *("libtirpc3", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal"),
    "python3-distutils",
)
_PIP: Final = ("python3-pip", "python3-setuptools", "python3-pkg-resources", "python3-wheel")
PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    FINAL: (*_LIBRARIES, *_PYTHON),
    BUILD: (*_LIBRARIES, *_PYTHON, *_PIP),
}
_WRITTEN: Final = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"
    "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnobody:x:65534:\ntty:x:5:\nstaff:x:50:\nnonroot:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_LINKS: Final = {"usr/bin/python": "python3.11", "usr/bin/python3": "python3.11"}
#: Folders with their mode and owner.
_FOLDERS: Final = {"tmp": (0o1777, 0), "root": (0o700, 0), "home/nonroot": (0o700, 65532)}
#: Of packages: what nobody reads in a container. Their licences (copyright) stay.
_UNREAD: Final = ("usr/share/man/", "usr/share/locale/", "usr/share/lintian/", "usr/share/bug/")
#: What Debian would put together when it configures the package.
_CERTIFICATES: Final = "usr/share/ca-certificates/mozilla/"
CONTAINERFILE: Final = """FROM scratch
ADD {file} /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
ENTRYPOINT ["/usr/bin/python3.11"]
"""


def write(name: str, architecture: str, archive: Path, environ: Mapping[str, str]) -> None:
    """Writes the file system of a base image as a tar file.

    Args:
        name: The image's.
        architecture: As Debian calls it (amd64, arm64).
        archive: Where to write it.
        environ: ALNAIR_DEBIAN_MIRROR in it is another mirror of Debian's packages.

    Raises:
        LocalClusterError: The packages cannot be fetched.
    """
    work = archive.with_suffix(".work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        packages = debian_packages.fetch(PACKAGES[name], architecture, work, environ)
        partial = work / "partial.tar"
        _merge(packages, partial)
        partial.rename(archive)
    finally:
        shutil.rmtree(work)


def _merge(packages: Sequence[Path], archive: Path) -> None:
    """Writes one tar file of packages; the same packages give the same bytes."""
    files: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    for package in packages:
        for info, content in _unpacked(package):
            files[info.name] = (info, content)
        fields = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, check=True).stdout
        _add(files, f"var/lib/dpkg/status.d/{package.name.partition('_')[0]}", fields)
    trusted = [text for name, (_, text) in sorted(files.items()) if name.startswith(_CERTIFICATES)]
    _add(files, "etc/ssl/certs/ca-certificates.crt", b"".join(trusted))
    for name, text in _WRITTEN.items():
        _add(files, name, text.encode())
    for name, target in _LINKS.items():
        _add(files, name, b"", kind=tarfile.SYMTYPE, link=target)
    for name, (mode, owner) in _FOLDERS.items():
        _add(files, name, b"", kind=tarfile.DIRTYPE, mode=mode, owner=owner)
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        for _, (info, content) in sorted(files.items()):
            tar.addfile(info, io.BytesIO(content))


def _unpacked(package: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """The files of a package that go into an image."""
    said = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(said.stdout)) as tar:
        for info in tar:
            name = info.name.removeprefix("./")
            is_read = not name.startswith("usr/share/doc/") or name.endswith("/copyright")
            if name in {"", "."} or not is_read or name.startswith(_UNREAD):
                continue
            info.name, info.mtime = name, 0
            file = tar.extractfile(info) if info.isreg() else None
            yield info, file.read() if file else b""


def _add(
    files: dict[str, tuple[tarfile.TarInfo, bytes]],
    name: str,
    content: bytes,
    *,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o644,
    owner: int = 0,
    link: str = "",
) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.linkname = kind, mode, len(content), link
    info.uid = info.gid = owner
    files[name] = (info, content)
