"""One workload as a process, with what it has printed."""

import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from alnair.profiler.logs.step_counter import StepCounter

#: Seconds that a workload has to end after SIGTERM.
_GRACE = 5.0
#: Seconds that its workers have to be gone, once they were killed. Some init processes reap late.
_WORKERS_GRACE = 0.5
#: Bytes of its last output that are shown when it fails.
_TAIL = 2000


class Command(msgspec.Struct, frozen=True):
    """What to run.

    Attributes:
        words: The program and its arguments.
        pattern: How its steps are read, as `StepCounter` takes it.
        environment: Variables beside those of this process.
    """

    words: tuple[str, ...]
    pattern: str | None = None
    environment: Mapping[str, str] = {}


class RunError(Exception):
    """A workload cannot be measured: why, and what to do."""


class Workload:
    """A running workload; a context manager that ends it with all of its processes.

    Attributes:
        seen: Moments of the monotonic clock at which steps were done, with how many by then.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._counter = StepCounter(command.pattern)
        self._tail: deque[bytes] = deque(maxlen=8)
        self.seen: list[tuple[float, float]] = []

    @property
    def name(self) -> str:
        """Its program."""
        return Path(self._command.words[0]).name

    def __enter__(self) -> Self:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **self._command.environment}
        try:
            self._process = subprocess.Popen(
                self._command.words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            raise RunError(f"{self._command.words[0]} does not start: {error.strerror}") from None
        assert self._process.stdout is not None
        self._output = self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it: first with a word, then by force."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            # Its group, for a launcher's workers would go on, and be beside the next one.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        self._await_group()
        self._output.close()

    def _await_group(self) -> None:
        """Wait until its workers, which nobody here is the parent of, have left the GPU, too."""
        deadline = time.monotonic() + _WORKERS_GRACE
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(self._process.pid, 0)
                time.sleep(0.01)

    def fileno(self) -> int:
        """For a selector."""
        return self._output.fileno()

    def read(self) -> bool:
        """Take what it has printed; return False once there will be no more.

        Raises:
            RunError: It has ended.
        """
        while True:
            try:
                data = os.read(self._output.fileno(), 1 << 16)
            except BlockingIOError:
                return True
            now = time.monotonic()
            if not data:
                raise RunError(self._end())
            self._tail.append(data)
            if self._counter.feed(data) and self._counter.done is not None:
                self.seen.append((now, self._counter.done))

    def _end(self) -> str:
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return f"{self.name} has closed its output, and its steps cannot be seen any more"
        said = b"".join(self._tail)[-_TAIL:].decode("utf-8", "replace").strip()
        return (
            f"{self.name} ended (exit code {code}) before it was measured: it must run until it is"
            f" ended. It said last:\n{said or '(nothing)'}"
        )
