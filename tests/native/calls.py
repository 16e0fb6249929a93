"""A process that makes the driver calls which a test asks for (tests/native/clients/calls.c)."""

import subprocess
from collections.abc import Mapping
from typing import NamedTuple, Self

from native import build

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY = 0, 1, 2
MIB = 1 << 20
BLOCK = 2 * MIB


class Out(NamedTuple):
    """The address of a variable of the client, 512 bytes that begin as zero."""

    name: str


class Var(NamedTuple):
    """The value of a variable of the client."""

    name: str


Argument = int | str | bytes | Out | Var


class Calls:
    """A client process with a context on GPU 0, which calls the driver on demand.

    Args:
        environment: of `Fake.environment` and `Container.environment`.
        arguments: of the client: none (it uses dlsym), or "proc", a CUDA version and flags.
        device: whose primary context becomes current; None: the test makes its own.
    """

    def __init__(
        self, environment: Mapping[str, str], *arguments: object, device: int | None = 0
    ) -> None:
        self.process = build.start(build.client("calls"), *arguments, environment=environment)
        if device is not None:
            assert self("cuInit", 0) == SUCCESS, self.errors()
            assert self("cuDevicePrimaryCtxRetain", Out("context"), device) == SUCCESS
            assert self("cuCtxSetCurrent", Var("context")) == SUCCESS

    def __call__(self, name: str, *arguments: Argument) -> int:
        """Calls a driver function; returns its CUresult, -1: the driver has no such function."""
        return int(self.ask("call", name, *arguments))

    def ask(self, *words: Argument) -> str:
        """Sends a line of the client; returns the answer."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(" ".join(map(_text, words)) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        assert answer, f"the client died at {words}: {self.errors()}"
        return answer

    def get(self, name: str) -> int:
        """A variable's value."""
        return int(self.ask("get", name))

    def errors(self) -> str:
        """Ends the client; returns what it wrote to stderr."""
        self.process.kill()
        return self.process.communicate()[1]

    def close(self) -> None:
        """Ends the client, as a program that returns from main."""
        _, errors = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, errors

    def kill(self) -> None:
        """Ends the client by SIGKILL."""
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            try:
                self.process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()


def _text(word: Argument) -> str:
    match word:
        case Out():
            return f"&{word.name}"
        case Var():
            return f"${word.name}"
        case bytes():
            return f"#{word.hex()}"
        case _:
            return str(word)
