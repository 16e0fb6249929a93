"""Builds and runs the C programs of this folder, and reads the JSON that they print."""

import json
import os
import shlex
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from gpu.place import is_bundle
from gpu.tenants import Home
from native import build

HERE = Path(__file__).parent
FOLDER = build.ROOT / "build" / "gpu" / "programs"
#: Programs and libraries of the tests, by file name.
SOURCES = {
    "memory": HERE / "memory.c",
    "load": HERE / "load.c",
    "beside.so": HERE / "beside.c",
    "deep.so": HERE / "deep.c",
    "deepbind": build.CLIENTS / "deepbind.c",
    "replay": build.CLIENTS / "replay.c",
}


@cache
def built(name: str) -> Path:
    """A program of SOURCES, compiled; in a bundle it is. It finds the driver when it runs."""
    program = FOLDER / name
    if not is_bundle():
        compiled(name, program, ["cc"])
    return program


def compiled(name: str, program: Path, compiler: list[str]) -> None:
    """Compiles one of SOURCES into a file; needs cuda.h, and no other header that is not libc's.

    Raises:
        RuntimeError: The compiler refuses; with what it said.
    """
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [*compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    command += ["-isystem", str(build.cuda_headers()), "-I", str(build.ROOT / "native" / "vgpu")]
    command += ["-shared", "-fPIC"] if name.endswith(".so") else []
    command += [str(SOURCES[name]), "-o", str(program), "-ldl", "-lm", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr}")


class Program:
    """A running program: one line of JSON at a time; `go` lets it take the next step."""

    def __init__(self, name: str, *arguments: object, at: Home) -> None:
        words: list[object] = [built(name), *arguments]
        if at.procs:  # it takes itself into its control group, before it is the program
            words = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', at.procs, *words]
        self._process = build.start(str(words[0]), *words[1:], environment=at.environment)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def line(self) -> Any:
        """The next line it prints.

        Raises:
            RuntimeError: it ended without one; with what it said.
        """
        if (found := self.line_or_end()) is None:
            code, said = self.end()
            raise RuntimeError(f"{self._process.args}: exit {code}: {said}")
        return found

    def line_or_end(self) -> Any:
        """The next line it prints, None at its end."""
        assert self._process.stdout
        text = self._process.stdout.readline()
        return json.loads(text) if text else None

    def go(self) -> None:
        """Sends the line that it waits for; nothing where it has ended."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        self._process.kill()
        self._process.communicate()

    def end(self) -> tuple[int, str]:
        """Waits for its end: exit code, and what it wrote to stderr."""
        with suppress(BrokenPipeError):
            _, said = self._process.communicate()
            return self._process.returncode, said.strip()
        return self._process.wait(), ""


def ran(name: str, *arguments: object, at: Home) -> Any:
    """Runs a program that prints one line, and returns what it printed."""
    program = Program(name, *arguments, at=at)
    found = program.line()
    program.end()
    return found


def script(
    name: str, *arguments: object, at: Home, python: str = sys.executable, packages: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Runs a Python script of this folder to its end; with our packages, or what it has itself."""
    enter = 'test -z "$0" || echo $$ > "$0"; exec "$@"'
    words = ["-c", enter, at.procs, python, HERE / name, *arguments]
    path = os.environ.get("PYTHONPATH") if packages else None
    environment = {**at.environment, **({"PYTHONPATH": path} if path else {})}
    return build.run("/bin/sh", *words, environment=environment, timeout=580)
