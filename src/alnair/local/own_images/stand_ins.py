"""Stand-ins for libraries of CUDA, so that PyTorch as PyPI has it loads without them.

Its package for Linux is built for CUDA, and needs 3 GB of libraries that no CPU runs. All that it
asks of them at its start are symbols. Here each is a function that says that there is no GPU, or
returns a place with zeros; so kernels for GPUs are not there, and all else is.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from alnair.local.errors import LocalClusterError

#: What CUDA's runtime answers where there is none: cudaErrorNoDevice.
_NO_DEVICE: Final = 100
_LACKING: Final = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
#: A symbol that a library has or wants: `0000 T name`, `     U name@version`.
_SYMBOL: Final = re.compile(r"^(?:[0-9a-f]+)? +(\w) ([^@\s]+)(?:@+(\S+))?$", re.MULTILINE)
_C_FUNCTION: Final = re.compile(r"(cu|nccl|nv)\w+")
_TYPE, _TABLE = "_ZTI", "_ZTV"
#: A constructor whose object Python's module keeps as a default: it makes what that is based on.
_OPTIONS: Final = re.compile(r"_ZN4c10d16ProcessGroupNCCL7OptionsC[12]E")
_HEAD: Final = """\
#include <string.h>
extern void *_ZTVN4c10d7Backend7OptionsE[];
extern void *_ZTVN10__cxxabiv117__class_type_infoE[];
static long nothing[512];
"""


def replace(folder: Path, gather: str, heavy: Iterable[str]) -> None:
    """Puts stand-ins into a folder of libraries, in the place of some and of all that are missing.

    Args:
        folder: Of the libraries.
        gather: The one whose stand-in has all the symbols.
        heavy: Names of others that need not be there.

    Raises:
        LocalClusterError: The C compiler fails.
    """
    gone: set[str] = set()
    for name in (gather, *heavy):
        path = folder / name
        gone |= {symbol for kind, symbol, _ in _symbols(path) if kind not in "Uvw"}
        path.unlink()
    kept = sorted(folder.glob("*.so*"))
    absent = {name for path in kept for name in _LACKING.findall(_said("ldd", str(path)))}
    have = {symbol for path in kept for kind, symbol, _ in _symbols(path) if kind != "U"}
    wanted = {
        symbol
        for path in kept
        for kind, symbol, version in _symbols(path)
        if kind == "U" and symbol not in have
        if symbol in gone or version in absent or (not version and _C_FUNCTION.match(symbol))
    }
    defined = "".join(_defined(symbol) for symbol in sorted(wanted))
    for name in sorted(absent):
        # One for all symbols: it is loaded after the libraries that it refers to.
        _compile(folder / name, _HEAD + defined if name == gather else "")


def _compile(library: Path, text: str) -> None:
    """Makes a shared library of C."""
    options = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{library.name}", "-xc", "-"]
    done = subprocess.run(
        ["cc", *options, "-xnone", "-o", str(library), "-l:libstdc++.so.6"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LocalClusterError(f"stand-ins for CUDA cannot be made: {done.stderr.strip()[-500:]}")


def _defined(symbol: str) -> str:
    """The definition of a symbol in C."""
    if symbol.startswith(_TYPE):
        name = symbol.removeprefix(_TYPE)
        kind = "struct { void *table; const char *name; }"
        return f'{kind} {symbol} = {{_ZTVN10__cxxabiv117__class_type_infoE + 2, "{name}"}};\n'
    if symbol.startswith(_TABLE):
        return f"void *{symbol}[64];\n"
    if _OPTIONS.match(symbol):
        body = "{ memset(it, 0, 128); *it = _ZTVN4c10d7Backend7OptionsE + 2; }"
        return f"void {symbol}(void **it) {body}\n"
    if symbol.startswith("_Z"):
        return f"void *{symbol}(void) {{ return nothing; }}\n"
    return f"int {symbol}(void) {{ return {_NO_DEVICE}; }}\n"


def _symbols(library: Path) -> Iterator[tuple[str, str, str]]:
    """Kind, name and version of the symbols that a library has (`T`, …) or wants (`U`)."""
    yield from _SYMBOL.findall(_said("nm", "-D", str(library)))


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
