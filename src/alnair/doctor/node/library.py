"""Do the libraries that hold programs to their slices run on this node's glibc, and older ones?"""

import re
from pathlib import Path
from typing import Final

from alnair.doctor.finding import Finding, error, ok, warning
from alnair.doctor.node.look import NodeLook
from alnair.node.vgpu import interposer_path

#: Of containers that are in use the oldest: CentOS 7, manylinux2014.
OLDEST: Final = (2, 17)
_NEEDED: Final = re.compile(rb"\0GLIBC_(\d+)\.(\d+)")
_SAYS: Final = re.compile(rb"GNU C Library [^\n]*version (\d+)\.(\d+)")
_FOLDERS: Final = ("lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64", "usr/lib64", "usr/lib")
_BUILD: Final = "make -C native vgpu"


def libraries(look: NodeLook) -> list[Finding]:
    """Both builds of the library are there, and need no newer glibc than the node has."""
    theirs = node_glibc(look)
    found = {"proxy/libcuda.so.1": interposer_path.proxy()}
    found[interposer_path.NAME] = interposer_path.interposer()
    return [_judged(name, path, theirs) for name, path in found.items()]


def _judged(name: str, path: Path | None, theirs: tuple[int, int] | None) -> Finding:
    if path is None:
        return error(f"{name} is not there: slices have no limits", fix=_BUILD)
    needed = glibc_needed(path.read_bytes())
    where, shown = str(path), _shown(needed)
    if theirs is not None and needed > theirs:
        text = f"built for glibc {shown}, and the node has {_shown(theirs)}"
        return error(text, where, fix=_BUILD)
    if needed > OLDEST:
        text = f"built for glibc {shown}: programs in older containers do not start"
        return warning(text, where, fix=_BUILD)
    return ok(f"built for glibc {shown}", where)


def glibc_needed(library: bytes) -> tuple[int, int]:
    """Return the newest version of glibc that a library asks for; (0, 0) if none."""
    return max(((int(a), int(b)) for a, b in _NEEDED.findall(library)), default=(0, 0))


def node_glibc(look: NodeLook) -> tuple[int, int] | None:
    """Return the version of the node's glibc; None: it has another C library, or none."""
    for folder in _FOLDERS:
        try:
            said = _SAYS.search(look.seen(f"/{folder}/libc.so.6").read_bytes())
        except OSError:
            continue
        if said:
            return int(said[1]), int(said[2])
    return None


def _shown(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
