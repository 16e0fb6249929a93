"""The files that the agent mounts into containers: both builds of the library, marked.

A copy with the mark gives no CUDA where it finds no limits (native/vgpu/session/mark.c): whoever
hides the mounted folder, or copies the library out of it, gains nothing by that.
"""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.vgpu import interposer_path

#: Where the preloaded library is mounted in a container; /etc/ld.so.preload names it.
MOUNTED: Final = Path("/usr/lib/alnair") / interposer_path.NAME
_UNSET: Final = b"ALNAIR-VGPU-MUST-LIMIT=0\0"
_SET: Final = b"ALNAIR-VGPU-MUST-LIMIT=1\0"


class Installed(msgspec.Struct, frozen=True):
    """The files of this node.

    Attributes:
        proxy: To be mounted over each `libcuda.so.1` of a container.
        preload: To be mounted at `MOUNTED`.
        preload_list: To be mounted at /etc/ld.so.preload.
    """

    proxy: Path
    preload: Path
    preload_list: Path


class InstallError(Exception):
    """The library is not there, or is no build of ours; says what to do."""


def install(folder: Path, *, proxy: Path | None = None, preload: Path | None = None) -> Installed:
    """Put the files into a folder of the agent; a file that is there and the same stays.

    Others are replaced in one step: a running container keeps the one that it has.

    Args:
        folder: Made if it is not there. Containers see single files of it only.
        proxy: Build to copy; None to look where it is built or installed.
        preload: The same, of `libalnair_vgpu.so`.

    Raises:
        InstallError: No library, or one without a place for the mark.
        OSError: The folder cannot be written.
    """
    installed = Installed(
        folder / "libcuda.so.1", folder / interposer_path.NAME, folder / "ld.so.preload"
    )
    proxy_text = _marked(proxy or interposer_path.proxy(), "proxy/libcuda.so.1")
    preload_text = _marked(preload or interposer_path.interposer(), interposer_path.NAME)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    _put(installed.proxy, proxy_text)
    _put(installed.preload, preload_text)
    _put(installed.preload_list, f"{MOUNTED}\n".encode())
    return installed


def _marked(source: Path | None, name: str) -> bytes:
    try:
        text = source.read_bytes() if source is not None else b""
    except OSError as error:
        raise InstallError(f"{source} cannot be read: {error.strerror}") from error
    if source is None:
        raise InstallError(
            f"{name} is not there: in a checkout, make -C native vgpu;"
            " else install a wheel of Alnair for this processor"
        )
    if text.count(_UNSET) + text.count(_SET) != 1:
        raise InstallError(f"{source} is no library of this version: make -C native vgpu")
    return text.replace(_UNSET, _SET)


def _put(path: Path, text: bytes) -> None:
    with contextlib.suppress(OSError):
        status = path.lstat()
        is_ours = status.st_uid == os.geteuid() and status.st_mode == 0o100755
        if is_ours and path.read_bytes() == text:
            return
    descriptor, fresh = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fchmod(descriptor, 0o755)
            # After a crash of the machine the name must not stand for an empty library.
            os.fsync(descriptor)
        Path(fresh).rename(path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
