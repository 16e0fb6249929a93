"""The images of a real node, made of files of this machine: no registry, no package, no network.

A program of the machine runs in a container if its libraries are there at the same paths. So an
image here is a few programs, what `ldd` says they need, and the few files that a C library reads.
"""

import hashlib
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

from alnair.local.errors import LocalClusterError
from alnair.local.real_node.image_archive import Image, Layer

PAUSE = "alnair.local/pause:local"
CUDA = "alnair.local/cuda-load:local"
PYTHON = "alnair.local/python:local"

#: For a look around, and for trying what a container may do; what the machine has of them.
_TOOLS = (
    *("sh", "cat", "ls", "env", "id", "sleep", "cp", "ln", "mkdir", "rm", "grep", "head", "getent"),
    *("mount", "umount", "unshare", "chroot", "kill"),
)
#: Every image with a C library has these parts of it; what is mounted into containers needs them.
_C_LIBRARY = (
    *("libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"),
    # By this name libraries ask for it that are loaded into a namespace of their own (dlmopen).
    *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
)
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
#: Of Python's own library, what no program in a container needs: 70 of 110 MB.
_UNNEEDED = {
    *("__pycache__", "dist-packages", "ensurepip", "idlelib", "lib2to3", "site-packages", "test"),
    *("tests", "tkinter", "turtledemo"),
}
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x[0-9a-f]+\)")


@dataclass
class _Files:
    """What goes into a layer, by its path in the image."""

    content: dict[str, Path] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Adds a file at its own path, with folders that are links (as /lib) as such."""
        folder = Path("/")
        for part in path.parent.parts[1:]:
            folder = folder / part
            if folder.is_symlink():
                self.links[str(folder)[1:]] = str(folder.readlink())
                folder = folder.resolve()
        self.content[str(folder / path.name)[1:]] = path.resolve()

    def add_programs(self, programs: Iterable[Path]) -> None:
        """Adds programs or libraries and all libraries that they are linked with."""
        for program in programs:
            self.add(program)
            for library in linked(program):
                self.add(library)

    def layer(self, written: Mapping[str, str], copied: Mapping[str, Path] | None = None) -> Layer:
        """The layer of these files, and of others that are written or copied elsewhere."""
        return Layer(
            {**self.content, **(copied or {})},
            dict(self.links),
            {name: text.encode() for name, text in written.items()},
        )


def linked(program: Path) -> list[Path]:
    """The libraries that a program is linked with, as this machine finds them.

    Raises:
        LocalClusterError: One is not there.
    """
    result = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if "not found" in result.stdout:
        raise LocalClusterError(f"{program} lacks a library: {result.stdout.strip()}")
    return [Path(path) for path in _LIBRARY.findall(result.stdout)]


def images(programs: Path, sources: Path) -> list[Image]:
    """All images.

    Args:
        programs: The folder of `pause` and `cuda_load`.
        sources: The folder of `cuda_load.py`.
    """
    load = _Files()
    load.add_programs([programs / "cuda_load"])
    load.content.pop(str(programs / "cuda_load")[1:], None)
    common, python = python_layers(sources)
    compiled = load.layer({}, {"usr/local/bin/cuda_load": programs / "cuda_load"})
    return [
        Image(PAUSE, (Layer({"pause": programs / "pause"}, {}, {}),), ("/pause",)),
        Image(CUDA, (common, compiled), ("/usr/local/bin/cuda_load",)),
        Image(PYTHON, (common, python), ("/usr/bin/python3",)),
    ]


def python_layers(sources: Path) -> tuple[Layer, Layer]:
    """The layers of the image with Python: a shell with a few tools, and this very Python.

    Args:
        sources: The folder of `cuda_load.py`.
    """
    base = _Files()
    tops = (Path("/", name) for name in ("bin", "sbin", "lib", "lib64"))
    base.links |= {top.name: str(top.readlink()) for top in tops if top.is_symlink()}
    base.add_programs(Path(found) for tool in _TOOLS if (found := which(tool)))
    libc = next(one for one in linked(Path("/bin/sh")) if one.name == "libc.so.6")
    base.add_programs(part for name in _C_LIBRARY if (part := libc.with_name(name)).exists())
    return base.layer(_FILES), _python(sources / "cuda_load.py")


def _python(script: Path) -> Layer:
    """This very Python, without its site-packages."""
    files = _Files()
    interpreter = Path(sys.executable).resolve()
    files.add_programs([interpreter])
    for kind in ("stdlib", "platstdlib"):
        folder = Path(sysconfig.get_path(kind, vars={"installed_base": sys.base_prefix}))
        for path in _walk(folder):
            files.add(path)
            if path.suffix == ".so":
                for library in linked(path):
                    files.add(library)
    if str(interpreter) != "/usr/bin/python3":
        files.links["usr/bin/python3"] = str(interpreter)
    return files.layer({}, {"usr/local/bin/cuda_load.py": script})


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _UNNEEDED or path.name.startswith("config-"):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file() and path.suffix != ".a":
            yield path


def key(programs: Path, sources: Path) -> str:
    """Tells images apart by what they are made from, without making them: see `images`.

    Of the machine's own files it looks at Python and the C library alone: with a new release of
    either, all of them may be others.
    """
    here = Path(__file__)
    sha = hashlib.sha256(f"{sys.version} {sys.executable} {sys.base_prefix}".encode())
    made_by = [here, here.with_name("image_archive.py"), sources / "cuda_load.py"]
    for path in [*made_by, programs / "pause", programs / "cuda_load", *linked(Path("/bin/sh"))]:
        seen = path.stat()
        sha.update(f"{path} {seen.st_size} {seen.st_mtime_ns}".encode())
    return sha.hexdigest()[:16]
