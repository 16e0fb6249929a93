"""Which functions a driver exports and hands out, beside those that our library knows."""

import ctypes
import struct
from pathlib import Path

import msgspec

from alnair.node.vgpu import interposer_path

_DYNSYM = 11
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class Entries(msgspec.Struct, frozen=True):
    """The driver's functions.

    Attributes:
        exported: How many names beginning with cu it exports.
        handed_out: How many base names cuGetProcAddress knows, of those in our table.
        hooked: Names in our table that our library stands before.
        missing: Names that this version should have and neither exports nor hands out.
        unhooked: Names that it exports and our table does not know.
        problem: Why there is no table to compare with, or "".
    """

    exported: int
    handed_out: int = 0
    hooked: int = 0
    missing: tuple[str, ...] = ()
    unhooked: tuple[str, ...] = ()
    problem: str = ""


def exported(library: Path) -> set[str]:
    """Names of the functions that a 64-bit little-endian ELF library defines.

    Raises:
        ValueError: It is no such library.
    """
    data = library.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{library} is no 64-bit ELF library")
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, start + size * i) for i in range(count)]
    names = set()
    for section in sections:
        if section[1] != _DYNSYM:
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, info, _, where, _, _ = _SYMBOL.unpack_from(data, at)
            if where and info & 15 == 2:  # defined here, and a function
                end = data.index(b"\0", strings + name)
                names.add(data[strings + name : end].decode("ascii", "replace"))
    return names


def compared(driver: ctypes.CDLL, library: Path, version: int) -> Entries:
    """Hold a driver's functions against our table.

    Args:
        driver: Opened.
        library: Its file.
        version: Its CUDA version, as 12040.

    Raises:
        ValueError: The file is no library.
    """
    theirs = {name for name in exported(library) if name[:2] == "cu" and name[2:3].isupper()}
    table = interposer_path.symbols()
    if table is None:
        return Entries(len(theirs), problem="our table of functions is not installed")
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    rows = [row for row in rows if row[0].startswith("cu")]
    bases = {row[1] for row in rows}
    handed = {base for base in bases if _handed_out(driver, base, version)}
    missing = [
        name
        for name, base, since, *_ in rows
        if since.isdigit() and int(since) <= version and name not in theirs and base not in handed
    ]
    return Entries(
        exported=len(theirs),
        handed_out=len(handed),
        hooked=sum(row[3] == "hook" for row in rows),
        missing=tuple(sorted(missing)),
        unhooked=tuple(sorted(theirs - {row[0] for row in rows})),
    )


def _handed_out(driver: ctypes.CDLL, base: str, version: int) -> bool:
    found = ctypes.c_void_p()
    arguments = (base.encode(), ctypes.byref(found), version, ctypes.c_uint64(0))
    if hasattr(driver, "cuGetProcAddress_v2"):
        result = driver.cuGetProcAddress_v2(*arguments, None)
    elif hasattr(driver, "cuGetProcAddress"):
        result = driver.cuGetProcAddress(*arguments)
    else:
        return False
    return not result and bool(found.value)
