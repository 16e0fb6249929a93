"""One watch stream: bytes in, changes out, and where to go on when it ends."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Generic, TypeVar

from alnair.kube.codec import Codec, Lines, WatchEvent
from alnair.kube.transport import Transport

T = TypeVar("T")


class LineSplitter:
    """Cuts a byte stream into runs of whole lines, however the network cut it before."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> bytes:
        """Take some bytes; return all lines that are whole now, b"" if none is."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._parts.append(data)
            return b""
        if not self._parts and end == len(data):
            return data
        self._parts.append(data[:end])
        whole = b"".join(self._parts)
        self._parts = [data[end:]] if end < len(data) else []
        return whole


class Watch(Generic[T]):
    """The changes after a version, until the server ends the stream.

    Iterate over it for single events, or over `batches()` for all events that one read brought,
    which costs less. The stream ends normally after the timeout that was asked for; go on with a
    new watch from `resource_version`.

    Attributes:
        resource_version: The version after all that was yielded; bookmarks move it too and are not
            yielded.

    Raises:
        Gone: (While iterating.) The version is too old: list again.
        ApiError: The server refuses or ends the stream with another error.
        ConnectionFailed: The stream broke or fell silent; a half line at its end is forgotten.
        ProtocolError: A line is no watch event, or (single events only) an object does not fit the
            type.
    """

    def __init__(
        self,
        transport: Transport,
        codec: Codec[T],
        path: str,
        query: dict[str, str],
        resource_version: str,
        idle_timeout: float | None,
    ) -> None:
        self._transport = transport
        self._codec = codec
        self._path = path
        self._query = query
        self._idle_timeout = idle_timeout
        self.resource_version = resource_version

    async def batches(self) -> AsyncGenerator[Lines[T]]:
        """Yield the events as they come off the wire; some lists are empty (bookmarks)."""
        query = {**self._query, "resourceVersion": self.resource_version}
        cutter = LineSplitter()
        decode = self._codec.lines
        async with self._transport.stream(self._path, query, self._idle_timeout) as stream:
            while True:
                data = await stream.readany()
                if not data:
                    return
                whole = cutter.feed(data)
                if whole:
                    lines = decode(whole)
                    yield lines
                    self.resource_version = lines.resource_version or self.resource_version
                    if lines.error is not None:
                        raise lines.error

    async def __aiter__(self) -> AsyncIterator[WatchEvent[T]]:
        async with aclosing(self.batches()) as batches:
            async for lines in batches:
                lines.check()
                for event in lines.events:
                    yield event
