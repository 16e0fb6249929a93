"""Bytes of a log with time stamps as lines."""

import calendar
import re
from collections.abc import Iterator

import msgspec

#: Bytes of a line that are kept, its time stamp among them.
MOST_BYTES = 16 * 1024
_STAMP = re.compile(
    rb"([12]\d{3})-(0[1-9]|1[0-2])-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?"
    rb"(?:Z|([+-])(\d{2}):(\d{2})) ?"
)
NANOSECONDS = 10**9


class LogLine(msgspec.Struct, frozen=True):
    """A line of a container's log.

    Attributes:
        at: When the container wrote it, by its node's clock: nanoseconds since the epoch.
        text: Without its end; of a very long one the beginning.
    """

    at: int
    text: bytes


class LineCutter:
    """Cuts a stream into lines, however the network cut it before; a long line loses its end."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._begun = bytearray()

    def feed(self, data: bytes) -> Iterator[LogLine]:
        """Take some bytes; yield the lines that are whole now.

        A line without a time is not the container's: the kubelet says why it has no more.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._keep(data, start, end)
            start = end + 1
            line = read(bytes(self._begun))
            self._begun.clear()
            if line is not None:
                yield line
        self._keep(data, start, len(data))

    def rest(self) -> LogLine | None:
        """Return the line that was begun: a container has ended without ending its line."""
        return read(bytes(self._begun)) if self._begun else None

    def _keep(self, data: bytes, start: int, end: int) -> None:
        room = self._most - len(self._begun)
        if room > 0:
            self._begun += data[start : min(end, start + room)]


def read(line: bytes) -> LogLine | None:
    """Return a line's time and text; None where it does not begin with a time."""
    found = _STAMP.match(line)
    if found is None:
        return None
    whole = calendar.timegm(tuple(int(found[part]) for part in range(1, 7)))
    if found[8]:
        away = int(found[9]) * 3600 + int(found[10]) * 60
        whole += -away if found[8] == b"+" else away
    fraction = int(found[7].ljust(9, b"0")) if found[7] else 0
    return LogLine(whole * NANOSECONDS + fraction, line[found.end() :])
