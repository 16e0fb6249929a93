"""The streams that a command is started with: all are open, and stdout says whose error it is.

An error of stdout is an OSError as any other, and commands take OSErrors for what they were doing
then: a reader that is gone (`| head -1`) was told as a cluster that cannot be read.
"""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class StdoutError(OSError):
    """What goes to stdout finds no room, or no reader."""


class _Stdout(io.FileIO):
    def write(self, data: "bytes | bytearray | memoryview", /) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError as error:
            raise StdoutError(error.errno, error.strerror) from None


@contextmanager
def prepared() -> Iterator[None]:
    """Open to /dev/null what is closed, and end the command with a sentence if stdout fails.

    Raises:
        SystemExit: 1; without a word where the reader is gone.
    """
    _open_all()
    sys.stdout = _telling(sys.stdout)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except StdoutError as error:
        # What is left in the buffer would be tried again at the end of the interpreter.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno != errno.EPIPE:
            print(f"alnair: stdout cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def _open_all() -> None:
    """Have no file that is opened later become what was closed, and be written to as that."""
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _telling(stdout: object) -> io.TextIOWrapper:
    assert isinstance(stdout, io.TextIOWrapper)
    stdout.flush()
    raw = _Stdout(1, "w", closefd=False)
    return io.TextIOWrapper(
        raw if stdout.write_through else io.BufferedWriter(raw),  # type: ignore[type-var]
        encoding=stdout.encoding,
        errors=stdout.errors,
        line_buffering=stdout.line_buffering,
        write_through=stdout.write_through,
    )
