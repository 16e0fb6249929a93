"""A byte stream cut into lines that are safe to look at."""

import re
from collections.abc import Iterator

#: Characters of a line that are looked at. A step and its figures are never further right.
MOST_CHARACTERS = 1000
#: Bytes of a line that are kept while it grows: four for each character.
_MOST_BYTES = 4 * MOST_CHARACTERS
#: A bar is written over itself by carriage returns: each state of it is a line.
_ENDS = re.compile(rb"[\r\n]")
#: Colours and cursor movements (CSI), and titles (OSC), which a terminal would not show as text.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|.)?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class LineReader:
    """Cuts bytes into clean lines, however they were cut before; a long line loses its end."""

    def __init__(self) -> None:
        self._begun = bytearray()

    def feed(self, data: bytes) -> Iterator[str]:
        """Take some bytes; yield the lines that are whole now, empty ones left out."""
        start = 0
        for end in _ENDS.finditer(data):
            self._keep(data, start, end.start())
            start = end.end()
            yield from self.close()
        self._keep(data, start, len(data))

    def close(self) -> Iterator[str]:
        """Yield the line that has begun, if there is one: the stream ends."""
        if self._begun:
            line = clean(self._begun.decode("utf-8", "replace"))
            self._begun.clear()
            if line:
                yield line

    def _keep(self, data: bytes, start: int, end: int) -> None:
        room = _MOST_BYTES - len(self._begun)
        if room > 0:
            self._begun += data[start : min(end, start + room)]


def clean(text: str) -> str:
    """Return a line without escapes, control characters and blanks around it, cut at its limit."""
    if not text.isprintable():
        text = _CONTROLS.sub(" ", _ESCAPES.sub("", text))
    return text[:MOST_CHARACTERS].strip()
