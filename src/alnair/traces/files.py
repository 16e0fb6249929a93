"""Text from files that may be anything: compressed, damaged, huge, or no text at all."""

import gzip
import io
import zlib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

#: A file, on disk or in the package.
Source = Path | Traversable
_GZIP: Final = b"\x1f\x8b"
#: A trace that is larger is a mistake, or a bomb; reading it would take the machine down first.
MOST_BYTES: Final = 512 << 20


class TraceFileError(Exception):
    """Files that cannot be used; the message has a line per problem, each with the fix."""


def content(source: Source) -> bytes:
    """Return what is in a file, decompressed whatever its name is.

    Raises:
        TraceFileError: It cannot be read, is damaged, or holds more than `MOST_BYTES`.
    """
    try:
        data = source.read_bytes()
        if data[:2] == _GZIP:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceFileError(
            f"{source}: the compressed file is damaged ({error}): get it anew"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceFileError(f"{source}: cannot be read ({reason}): check the path") from error
    if len(data) > MOST_BYTES:
        raise TraceFileError(
            f"{source}: holds more than {MOST_BYTES >> 20} MiB of text: cut it into parts"
        )
    return data


def text(source: Source) -> str:
    """Return the text of a file.

    Raises:
        TraceFileError: As `content`, and if it is not UTF-8.
    """
    return decoded(content(source), source)


def decoded(data: bytes, source: Source) -> str:
    """Return the text that the bytes of a file are, without a byte order mark.

    Raises:
        TraceFileError: It is not UTF-8; the message has the line.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceFileError(
            f"{source}, line {line}: this is not UTF-8 text ({error}): save it as such"
        ) from error


def lines(source: Source) -> list[str]:
    """Return the lines of a text file, with their ends; raises as `text`."""
    return lines_of(text(source))


def lines_of(found: str) -> list[str]:
    """Return the lines as editors count them: other separators of Unicode end none."""
    return list(io.StringIO(found, newline=""))
