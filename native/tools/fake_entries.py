"""Write the fake driver's entry points from NVIDIA's public headers (test double, build time only).

    python native/tools/fake_entries.py --include DIR --sources native/fakegpu --out DIR

`cuda.h` says which functions libcuda.so.1 exports, older ABIs and per-thread variants included;
`cudaTypedefs.h` says which version of CUDA brought each. Both are sorted by version, and the n-th
export of a name is the n-th typedef: a mismatch in number stops the build. Where a file under
`--sources` defines `FG(name)`, the entry point calls it; all others answer "not supported".
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

# Headers whose own includes (GL, EGL, VDPAU) are not on PyPI: only names and versions are read.
NAMES_ONLY = (
    "cudaProfilerTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaVDPAUTypedefs.h",
)
PRESENTED = (11080, 12040, 13000, 13050)
# Valid before cuInit.
EARLY = re.compile(
    r"cu(Init|DriverGetVersion|GetProcAddress|GetExportTable|GetErrorName|GetErrorString)"
)
# After these memory pools let go what is free.
WAITS = re.compile(r"cu(Ctx|Stream|Event)Synchronize")


class Entry(NamedTuple):
    """One exported function: its symbol, and what cuGetProcAddress calls it."""

    symbol: str
    base: str
    version: int  # of CUDA, as in 12040
    variant: str  # "", "_ptsz" or "_ptds"
    parameters: str | None  # None: declared nowhere we can include


def split(symbol: str) -> tuple[str, int, str]:
    """Base name, ABI number and per-thread variant of a symbol."""
    match = re.fullmatch(r"(cu\w+?)(?:_v(\d+))?(_ptsz|_ptds)?", symbol)
    assert match
    return match[1], int(match[2] or 1), match[3] or ""


def declared(include: pathlib.Path, compiler: str) -> dict[str, str]:
    """Parameters by symbol, of every function that cuda.h declares."""
    text = subprocess.run(
        [compiler, "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-x", "c", include / "cuda.h"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.findall(r"\bCUresult\s+(cu\w+)\s*\(([^;]*?)\)\s*;", text, re.DOTALL)
    return {name: " ".join(parameters.split()) for name, parameters in found}


def typedefs(header: pathlib.Path) -> dict[tuple[str, str], list[int]]:
    """Versions by (base name, variant), oldest first."""
    found = collections.defaultdict(set)
    for base, version, variant in re.findall(
        r"PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", header.read_text()
    ):
        found[base, variant].add(int(version))
    return {key: sorted(versions) for key, versions in found.items()}


def entries(include: pathlib.Path, compiler: str) -> list[Entry]:
    """Every entry point, by symbol."""
    parameters = declared(include, compiler)
    symbols = collections.defaultdict(list)
    for symbol in parameters:
        base, abi, variant = split(symbol)
        symbols[base, variant].append((abi, symbol))
    versions = typedefs(include / "cudaTypedefs.h")
    result = []
    for key in sorted(symbols.keys() | versions.keys()):
        exported, known = sorted(symbols.get(key, [])), versions.get(key, [])
        if len(exported) != len(known):
            sys.exit(f"{key}: cuda.h has {exported}, cudaTypedefs.h has {known}")
        for (_, symbol), version in zip(exported, known, strict=True):
            result.append(Entry(symbol, key[0], version, key[1], parameters[symbol]))
    for name in NAMES_ONLY:
        of_header = typedefs(include / name)
        for (base, variant), known in of_header.items():
            if base.startswith("cuWGL"):  # Windows
                continue
            # Per-thread variants exist of the newest ABI only.
            first = len(of_header[base, ""]) if variant else 1
            for abi, version in enumerate(known, first):
                symbol = base + (f"_v{abi}" if abi > 1 else "") + variant
                result.append(Entry(symbol, base, version, variant, None))
    return sorted(result)


def implemented(sources: pathlib.Path) -> set[str]:
    """Symbols that the sources define by FG(name)."""
    found: set[str] = set()
    for path in sorted(sources.glob("*/*.c")):
        found.update(re.findall(r"^CUresult FG\((cu\w+)\)", path.read_text(), re.MULTILINE))
    return found


def arguments(parameters: str) -> str:
    """The names of the parameters, as a call has them."""
    if parameters in ("", "void"):
        return ""
    last_word = re.compile(r"(\w+)\s*(?:\[\w*\])?$")
    return ", ".join(last_word.findall(each)[0] for each in parameters.split(","))


def body(entry: Entry, modelled: set[str]) -> str:
    """The definition of one entry point."""
    enter = f"ENTER{'_EARLY' if EARLY.match(entry.symbol) else ''}(FG_{entry.symbol})"
    head = f"FG_EXPORT CUresult {entry.symbol}({entry.parameters or 'void'})"
    if entry.parameters is None or not modelled & {entry.symbol, alias(entry)}:
        return f"{head} {{ {enter}; return CUDA_ERROR_NOT_SUPPORTED; }}"
    call = arguments(entry.parameters)
    if WAITS.match(entry.symbol):
        per_thread = int(bool(entry.variant))
        return f"{head} {{ {enter}; WAIT(fgi_{alias(entry)}({call}), {per_thread}); }}"
    if entry.symbol in modelled:
        return f"{head} {{ {enter}; return fgi_{entry.symbol}({call}); }}"
    return f"{head} {{ {enter}; PER_THREAD(fgi_{alias(entry)}({call})); }}"


def alias(entry: Entry) -> str:
    """The symbol whose model serves a per-thread variant, with the per-thread mark set."""
    return entry.symbol.removesuffix(entry.variant) if entry.variant else entry.symbol


def write(path: pathlib.Path, text: str) -> None:
    """Write only what changed, so that make rebuilds only what must be."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> None:
    """Generate; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="gcc")
    options = parser.parse_args()
    every = entries(options.include, options.compiler)
    modelled = implemented(options.sources)
    unknown = modelled - {entry.symbol for entry in every}
    if unknown:
        sys.exit(f"FG() of what no header declares: {', '.join(sorted(unknown))}")
    options.out.mkdir(parents=True, exist_ok=True)
    symbols = [entry.symbol for entry in every]
    write(
        options.out / "fg_symbols.h",
        "enum fg_symbol {\n" + "".join(f"    FG_{s},\n" for s in symbols) + "    FG_SYMBOLS\n};\n",
    )
    write(
        options.out / "fg_symbols.c",
        '#include "state/state.h"\nconst char *const fg_symbol_names[] = {\n'
        + "".join(f'    "{s}",\n' for s in symbols)
        + f"}};\nconst unsigned fg_symbol_count = {len(symbols)};\n"
        + f'_Static_assert({len(symbols)} < FG_CALLS, "room for all names");\n',
    )
    write(
        options.out / "fg_declarations.h",
        "".join(
            f"CUresult fgi_{e.symbol}({e.parameters});\n" for e in every if e.parameters is not None
        ),
    )
    write(
        options.out / "fg_entries.c",
        '#include "driver/entries.h"\n#include "pools/pool.h"\n'
        + "".join(body(entry, modelled) + "\n" for entry in every)
        + "const struct fg_entry fg_entries[] = {\n"
        + "".join(
            f'    {{"{e.base}", (void *){e.symbol}, {e.version}, {int(bool(e.variant))}}},\n'
            for e in sorted(every, key=lambda e: (e.base, bool(e.variant), e.version))
        )
        + f"}};\nconst unsigned fg_entry_count = {len(every)};\n",
    )
    codes = re.findall(
        r"^\s+(CUDA_(?:ERROR_\w+|SUCCESS))\s*=\s*(\d+)",
        (options.include / "cuda.h").read_text(),
        re.MULTILINE,
    )
    write(
        options.out / "fg_errors.inc", "".join(f'{{{code}, "{name}"}},\n' for name, code in codes)
    )
    for presented in PRESENTED:  # what a driver of that version exports
        names = "".join(f"    {e.symbol};\n" for e in every if e.version <= presented)
        write(
            options.out / f"cuda-{presented}.map",
            f"{{\n  global:\n{names}  local: *;\n}};\n",
        )
    print(f"{len(every)} entry points, {len(modelled)} models")


if __name__ == "__main__":
    main()
