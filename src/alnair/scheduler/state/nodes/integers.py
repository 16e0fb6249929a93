"""Integers in texts, as Go's `strconv.ParseInt` reads them: decimal, 64 bits, nothing around."""

import re
from typing import Final

# 19 digits reach 64 bits; zeros before them are allowed.
_INTEGER: Final = re.compile(r"[+-]?0*[0-9]{1,19}")


def parse_int(text: str) -> int | None:
    """Return the number, or None if the text is none."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
