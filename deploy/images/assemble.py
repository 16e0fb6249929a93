"""Fills the folder /out of a build stage with what an image copies: see Containerfile.

    assemble.py standard-library     bytecode of the base's own library, which comes without
    assemble.py packages LOCK        the packages of a lock, whose hashes pip verifies
    assemble.py alnair               Alnair's wheel, the command, and the list of all parts (SBOM)

It runs with the Python of the build stage, on the builder's processor; what it writes is for
TARGETARCH. Bytecode is the same for all processors, and for all releases of Python 3.11.
"""

import hashlib
import json
import os
import py_compile
import shutil
import struct
import subprocess
import sys
import uuid
from importlib.metadata import Distribution, distributions
from pathlib import Path

OUT = Path("/out")
SOURCES = Path("/src")
BASE = Path("/base")
#: Where the base's Python looks for packages that are not of its distribution.
SITE = Path("usr/local/lib/python3.11/dist-packages")
STANDARD_LIBRARY = Path("usr/lib/python3.11")
SBOM = Path("usr/share/sbom/alnair.cdx.json")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
#: The newest first: Debian 12 has glibc 2.36.
MANYLINUX = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
#: Of the base's library: what no process of ours imports.
UNUSED = {"distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter"}
#: Of packages: what is for builds or tests of others.
DROPPED = (
    *("**/tests", "**/*.pyi", "**/*.pxd", "**/*.pyx", "**/*.h", "**/*.a", "numpy/f2py", "bin"),
    *("numpy/distutils", "numpy/_core/*_tests.*.so", "numpy/_core/_simd.*.so"),
    *("alembic/testing", "sqlalchemy/testing", "sqlalchemy/dialects/oracle"),
    *("sqlalchemy/dialects/mssql", "sqlalchemy/dialects/mysql"),
    # Languages to be coloured: a traceback of ours is Python.
    *("pygments/lexers/[a-oq-z]*.py", "pygments/lexers/p[!y]*.py"),
    "pygments/lexers/_*_builtins.py",
)
COMMAND = "#!/usr/bin/python3\nfrom alnair.cli.entry import main\n\nmain()\n"


def compile_all(folder: Path, seen: Path, out: Path) -> None:
    """Compile all modules of a folder.

    Args:
        folder: Where they are.
        seen: Where the image has them, as tracebacks tell.
        out: Where the image's root is; they go into the folders `__pycache__` of `seen` there.
    """
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0] in UNUSED:
            continue
        target = out / seen / name.parent / "__pycache__" / f"{name.stem}.cpython-311.pyc"
        target.parent.mkdir(parents=True, exist_ok=True)
        # Without a look at the source's time, which an image does not keep.
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(path), str(target), f"/{seen / name}", invalidation_mode=mode)


def pip_install(site: Path, *what: str) -> None:
    """Install for the image's processor into a folder."""
    machine = MACHINES[os.environ["TARGETARCH"]]
    platforms = [f"--platform={name}_{machine}" for name in MANYLINUX]
    abis = ["--abi=cp311", "--abi=abi3", "--abi=none"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    command += ["--only-binary=:all:", "--implementation=cp", "--python-version=3.11"]
    # An empty setting is none, and not the empty index.
    environment = {name: text for name, text in os.environ.items() if text}
    subprocess.run(
        [*command, *platforms, *abis, f"--target={site}", *what], check=True, env=environment
    )


def strip(library: Path) -> None:
    """Cut off what follows the segments that are loaded: sections for debuggers, and their table.

    A linker puts them last, and no loader reads them (ELF-64, the gABI's chapters 4 and 5).
    """
    data = bytearray(library.read_bytes())
    if data[:6] != b"\x7fELF\x02\x01":
        return
    (begin,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    end = begin + size * count
    for at in range(begin, end, size):
        offset, _, _, length = struct.unpack_from("<QQQQ", data, at + 8)
        end = max(end, offset + length)
    del data[end:]
    struct.pack_into("<Q", data, 40, 0)  # where the table of sections is,
    struct.pack_into("<HH", data, 60, 0, 0)  # how long, and which one has their names
    library.write_bytes(data)


def packages(lock: Path) -> None:
    """Install the packages of a lock, without what is for builds, tests and debuggers."""
    site = OUT / "packages" / SITE
    pip_install(site, "--require-hashes", f"--requirement={lock}")
    for pattern in DROPPED:
        for path in list(site.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    for library in site.rglob("*.so*"):
        strip(library)
    compile_all(site, SITE, OUT / "packages")


def alnair() -> None:
    """Install our own wheel, the command, and the SBOM."""
    root = OUT / "alnair"
    (wheel,) = (
        path
        for path in SOURCES.glob("*.whl")
        if path.stem.endswith(("-any", MACHINES[os.environ["TARGETARCH"]]))
    )
    pip_install(root / SITE, str(wheel))
    shutil.rmtree(root / SITE / "bin")
    compile_all(root / SITE, SITE, root)
    command = root / "usr/local/bin/alnair"
    command.parent.mkdir(parents=True)
    command.write_text(COMMAND)
    command.chmod(0o755)
    sites = [str(OUT / part / SITE) for part in ("packages", "alnair")]
    sbom = root / SBOM
    sbom.parent.mkdir(parents=True)
    sbom.write_text(json.dumps(bill_of_materials(sites), indent=1))


def bill_of_materials(sites: list[str]) -> dict[str, object]:
    """All Python and Debian packages of the image, as CycloneDX 1.6."""
    parts = [python_part(one) for one in distributions(path=sites)]
    parts += [debian_part(path) for path in (BASE / "var/lib/dpkg/status.d").iterdir()]
    parts = [part for part in parts if part]
    parts.sort(key=lambda part: str(part["purl"]))
    same = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, same)}",
        "version": 1,
        "components": parts,
    }


def python_part(one: Distribution) -> dict[str, object]:
    """A Python package, as a component."""
    name = one.metadata["Name"].lower().replace("_", "-")
    part = component(name, one.version, f"pkg:pypi/{name}@{one.version}")
    if expression := one.metadata["License-Expression"]:
        part["licenses"] = [{"expression": expression}]
    return part


def debian_part(path: Path) -> dict[str, object]:
    """A Debian package, as a component; empty for what is no package's file."""
    fields = dict(line.split(": ", 1) for line in path.read_text().splitlines() if ": " in line[1:])
    if "Package" not in fields or path.suffix == ".md5sums":
        return {}
    name, version = fields["Package"], fields["Version"]
    architecture = fields["Architecture"]
    purl = f"pkg:deb/debian/{name}@{version}?arch={architecture}&distro=debian-12"
    return component(name, version, purl)


def component(name: str, version: str, purl: str) -> dict[str, object]:
    """A component with what every one has."""
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    step, *arguments = sys.argv[1:]
    if step == "standard-library":
        compile_all(BASE / STANDARD_LIBRARY, STANDARD_LIBRARY, OUT / "standard-library")
    elif step == "packages":
        packages(Path(arguments[0]))
    else:
        alnair()
