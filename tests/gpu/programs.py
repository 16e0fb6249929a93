"""Builds and runs the C programs of this folder, and reads the JSON that they print."""

import json
import shlex
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from gpu.tenants import Home
from native import build

HERE = Path(__file__).parent


@cache
def built(name: str) -> Path:
    """Compiles NAME.c of this folder; needs cuda.h only, and finds the driver when it runs."""
    program = build.ROOT / "build" / "gpu" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    command += ["-I", str(build.cuda_headers()), str(HERE / f"{name}.c"), "-o", str(program)]
    done = subprocess.run([*command, "-ldl", "-lm"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr}")
    return program


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


def script(name: str, *arguments: object, at: Home) -> "subprocess.CompletedProcess[str]":
    """Runs a Python script of this folder to its end."""
    enter = 'test -z "$0" || echo $$ > "$0"; exec "$@"'
    words = ["-c", enter, at.procs, sys.executable, HERE / name, *arguments]
    return build.run("/bin/sh", *words, environment=at.environment, timeout=580)
