"""Talks to an MPS control daemon: one short-lived `nvidia-cuda-mps-control` per question.

The protocol is text on its stdin (NVIDIA's MPS documentation, "nvidia-cuda-mps-control"). Anything
may hang, for the program waits for the daemon's pipe; so every question has a time limit.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path


class MpsError(Exception):
    """The daemon refused, did not answer, or is not there; says which and what it said."""


class Control:
    """How to reach one daemon.

    Args:
        command: The control program with its first arguments.
        environment: Its variables, the pipe folder among them, on top of our own.
        answer_s: Seconds it has for an answer.
    """

    def __init__(
        self, command: tuple[str, ...], environment: Mapping[str, str], *, answer_s: float
    ) -> None:
        self._command = command
        self._answer_s = answer_s
        self.environment = {**os.environ, **environment}

    def start(self, output: Path) -> int:
        """Starts a daemon; returns its pid.

        It is our child, in a session of its own: Ctrl-C is ours, not its. Nothing of asyncio holds
        it, which would kill it with the event loop: a daemon may outlive us.

        Args:
            output: File that gets what it prints.

        Raises:
            OSError: There is no such program, or the file cannot be written.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.posix_spawnp(
            self._command[0],
            [*self._command, "-f"],
            self.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )

    async def ask(self, question: str) -> str:
        """Sends one command; returns what it prints, without the last newline.

        Raises:
            MpsError: No answer in time, or a refusal.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )
        except OSError as error:
            raise MpsError(f"cannot run {self._command[0]}: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._answer_s):
                said, _ = await process.communicate(f"{question}\n".encode())
        except TimeoutError:
            raise MpsError(f"no answer to {question!r} within {self._answer_s:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        text = said.decode(errors="replace").strip()
        if process.returncode:
            raise MpsError(f"{question!r} was refused: {text or f'exit {process.returncode}'}")
        return text

    async def pids(self, question: str) -> tuple[int, ...]:
        """The pids that answer a question for a list, one a line.

        Raises:
            MpsError: No answer, a refusal, or something else than pids.
        """
        said = await self.ask(question)
        try:
            return tuple(int(line) for line in said.split())
        except ValueError:
            raise MpsError(f"{question!r} answered {said[:80]!r} instead of pids") from None
