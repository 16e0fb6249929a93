"""Builds what native tests need: the libraries once per run, C programs when their text changes."""

import fcntl
import hashlib
import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = Path(__file__).parent / "clients"
#: "address", "undefined", "address+undefined" or "thread": build and test with this sanitizer
#: (see native/Makefile).
SANITIZE = os.environ.get("ALNAIR_SANITIZE", "")
#: Only our library and the clients, and not the fake GPU: half a minute of compiling less.
ONLY_OURS = "ours" if os.environ.get("ALNAIR_SANITIZE_OURS") else ""
COVERAGE = "coverage" if os.environ.get("ALNAIR_COVERAGE") else ""
LIBRARIES = ROOT / "build" / "-".join(filter(None, ["native", SANITIZE, ONLY_OURS, COVERAGE]))
#: The same without sanitizer: for all programs that are not built with one, such as Python. They
#: may be started by others than `start`, so environments name these; `start` puts the others in
#: their place for our clients, which alone have the sanitizer's runtime first.
PLAIN = ROOT / "build" / "native"
#: The interposer, as clients get it by LD_PRELOAD.
INTERPOSER = LIBRARIES / "libalnair_vgpu.so"


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Tests run in several processes, which must not build the same thing at once."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    with (folder / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def libraries() -> Path:
    """Runs make; returns the folder with libfakegpu.so, libcuda.so.1, libalnair_vgpu.so...

    Raises:
        RuntimeError: the build failed; with what the compiler said.
    """
    make = ["make", "-s", "-C", str(ROOT / "native"), f"PYTHON={sys.executable}"]
    with _locked("native"):
        if LIBRARIES != PLAIN:
            _run(make)
        if ONLY_OURS:
            ours = LIBRARIES / INTERPOSER.name
            _run([*make, f"SANITIZE={SANITIZE}", f"OUT={LIBRARIES}", str(ours)])
            _link_others()
        else:
            _run([*make, f"SANITIZE={SANITIZE}", f"COVERAGE={COVERAGE}"])
    return LIBRARIES


def _link_others() -> None:
    """What is not built with the sanitizer is found beside what is."""
    for path in PLAIN.iterdir():
        link = LIBRARIES / path.name
        if path.name != "clients" and not link.exists():
            link.symlink_to(path)


def vgpu() -> Path:
    """Only the library that limits: it needs a compiler, and no header of NVIDIA's."""
    with _locked("native"):
        _run(["make", "-s", "-C", str(ROOT / "native"), f"PYTHON={sys.executable}", "vgpu"])
    return PLAIN


@cache
def cuda_headers() -> Path:
    """Folder of NVIDIA's cuda.h and nvml.h, from the development packages."""
    for place in importlib.import_module("nvidia").__path__:
        if (found := Path(place) / "cu13" / "include" / "cuda.h").exists():
            return found.parent
    raise RuntimeError("no cuda.h: install the development packages by `make install`")


def client(name: str, *flags: str) -> Path:
    """Compiles tests/native/clients/NAME.c and returns the program.

    Args:
        name: file name without ".c".
        flags: more of the compiler's arguments, such as "-l:libcuda.so.1" (linked with the
            driver), "-static", "-DSTYLE=2". Without any, a program gets the driver by dlopen.
    """
    source = CLIENTS / f"{name}.c"
    sanitizer = (
        [f"-fsanitize={SANITIZE.replace('+', ',')}"] if SANITIZE and "-static" not in flags else []
    )
    command = ["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *sanitizer]
    command += ["-I", str(cuda_headers()), "-I", str(CLIENTS), "-I", str(ROOT / "native" / "vgpu")]
    after = ["-L", str(LIBRARIES), *flags, "-ldl", "-lpthread", "-lm"]
    texts = [source, *sorted(CLIENTS.glob("*.h")), ROOT / "native" / "vgpu" / "abi.h"]
    content = b"".join(path.read_bytes() for path in texts) + shlex.join(command + after).encode()
    program = LIBRARIES / "clients" / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
    with _locked("clients"):
        if not program.exists():
            program.parent.mkdir(parents=True, exist_ok=True)
            fresh = program.with_suffix(".new")
            _run([*command, str(source), "-o", str(fresh), *after])
            fresh.rename(program)
    return program


def start(
    program: Path | str, *arguments: object, environment: Mapping[str, str]
) -> "subprocess.Popen[str]":
    """Starts a client with this environment, and PATH; its streams are pipes of text."""
    return subprocess.Popen(
        [*_under(program), str(program), *map(str, arguments)],
        env={"PATH": os.environ.get("PATH", ""), **_suited(program, environment)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(
    program: Path | str, *arguments: object, environment: Mapping[str, str], timeout: float = 60
) -> "subprocess.CompletedProcess[str]":
    """Runs a client to its end; a test looks at `returncode`, `stdout` and `stderr`."""
    with start(program, *arguments, environment=environment) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def checked(
    program: Path | str, *arguments: object, environment: Mapping[str, str], timeout: float = 60
) -> str:
    """As `run`, and fails with the client's words unless it exits with 0; returns its stdout."""
    done = run(program, *arguments, environment=environment, timeout=timeout)
    assert done.returncode == 0, (
        f"{done.args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout


def preload(libraries: str) -> str:
    """LD_PRELOAD of a client, where something else starts it than `start`, as a shell does.

    A sanitizer's runtime must come before everything that it watches.
    """
    runtime = {"address": "libasan.so", "undefined": "libubsan.so", "thread": "libtsan.so"}
    if not SANITIZE:
        return libraries
    asked = subprocess.run(
        ["cc", f"-print-file-name={runtime[SANITIZE.partition('+')[0]]}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return f"{asked.stdout.strip()} {libraries}"


def _under(program: Path | str) -> list[str]:
    """What runs the program: valgrind, where ALNAIR_VALGRIND is set and it is one of ours."""
    if not os.environ.get("ALNAIR_VALGRIND") or Path(program).parent != LIBRARIES / "clients":
        return []
    return ["valgrind", "-q", "--error-exitcode=99", "--exit-on-first-error=yes"]


def _suited(program: Path | str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with the sanitizer's needs; without the sanitizer for programs not ours."""
    found = dict(environment)
    if not SANITIZE:
        return found
    if Path(program).parent != LIBRARIES / "clients":
        return {name: text.replace(str(LIBRARIES), str(PLAIN)) for name, text in found.items()}
    plain = re.compile(rf"{re.escape(str(PLAIN))}(?=[/: ]|$)")
    found = {name: plain.sub(str(LIBRARIES), text) for name, text in found.items()}
    if "LD_PRELOAD" in found:
        found["LD_PRELOAD"] = preload(found["LD_PRELOAD"])
    found["ASAN_OPTIONS"] = "detect_leaks=0"  # the fake driver forgets its tables when it exits
    found["UBSAN_OPTIONS"] = "print_stacktrace=1"
    found["TSAN_OPTIONS"] = "halt_on_error=1"
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stdout}\n{done.stderr}")
