"""Makes a fixture that replays anywhere of what record.c wrote: python fixture.py RAW > NAME.tsv.

Addresses become names: the n-th handle or allocation is H<n> or D<n> where it first appears, h<n>
and d<n>+offset where it is used. Numbers, flags and sizes stay. Names of kernels are cut to 40
characters. The format is described in tests/native/sequences/ORIGIN.md.
"""

import hashlib
import sys
from pathlib import Path

#: Handles below this are constants of the API: the legacy and the per-thread stream.
CONSTANTS = 16
LONGEST_NAME = 40


class Names:
    """Names for the addresses of one recording, in the order of their appearance."""

    def __init__(self) -> None:
        self._handles: dict[int, int] = {}
        self._ranges: list[tuple[int, int, int]] = []
        self._next = 0

    def new(self, address: int, size: int | None) -> int:
        """Names a new handle, or an allocation of this size."""
        self._next += 1
        if size is None:
            self._handles[address] = self._next
        else:
            self._ranges.append((address, size, self._next))
        return self._next

    def handle(self, address: int) -> str:
        """Text of a handle that is used."""
        if address < CONSTANTS or address not in self._handles:
            return f"h={address if address < CONSTANTS else 0}"
        return f"h{self._handles[address]}"

    def pointer(self, address: int) -> str:
        """Text of a device pointer that is used: the newest allocation that it lies in."""
        for base, size, name in reversed(self._ranges):
            if base <= address < base + max(size, 1):
                return f"d{name}+{address - base}" if address > base else f"d{name}"
        return "d=0"


def converted(line: str, names: Names) -> str:
    """One line of the fixture."""
    call, result, *rest = line.split("\t")
    given = dict(text[1:].split(":") for text in rest if text.startswith(">"))
    arguments = [text for text in rest if not text.startswith(">")]
    numbers = [
        value for kind, _, value in (text.partition(":") for text in arguments) if kind == "n"
    ]
    size = int(numbers[0], 16) if numbers else 0
    out = []
    for i, text in enumerate(arguments):
        kind, _, value = text.partition(":")
        if kind in "HD":
            made = given.get(str(i))
            new = names.new(int(made, base=16), size if kind == "D" else None) if made else 0
            out.append(f"{kind}{new}")
        elif kind == "n":
            out.append(str(int(value, base=16)))
        elif kind == "h":
            out.append(names.handle(int(value, base=16)))
        elif kind == "d":
            out.append(names.pointer(int(value, base=16)))
        elif kind == "c" and len(value) > LONGEST_NAME:
            digest = hashlib.sha256(value.encode()).hexdigest()[:7]
            out.append(f"c:{value[: LONGEST_NAME - 8]}_{digest}")
        else:
            out.append(text if kind in "bci" else "0" if value == "0" else kind)
    return "\t".join([call, result, *out])


def main() -> None:
    """Converts the file that the command line names."""
    names = Names()
    for line in Path(sys.argv[1]).read_text().splitlines():
        print(converted(line, names))


if __name__ == "__main__":
    main()
