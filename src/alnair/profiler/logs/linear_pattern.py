"""Regular expressions whose time grows with the length of a line, and never faster: RE2.

Python's `re` may take exponential time (`(a+)+b`), and cannot be interrupted. A user's pattern
meets lines that others write. docs/decisions/0027 has what was measured beside it.
"""

import re
from typing import Final

import re2

#: Bytes for a pattern and what is remembered of its ways; beyond them it becomes slower, not wrong.
_MEMORY: Final = 2 << 20
#: What RE2 says of a pattern that it does not take, and the part of the pattern that it means.
_REFUSED: Final = re.compile(r"(?P<what>[^:]+): (?P<part>.+)", re.DOTALL)
_TOO_LARGE: Final = ("repetition size", "too large")


class PatternError(ValueError):
    """What is wrong with a pattern, and what to write."""


class LinearPattern:
    r"""A pattern in the syntax of RE2; classes such as `\d` are of ASCII.

    Args:
        text: The pattern.

    Raises:
        PatternError: It is none, or one that needs more than a line's length of time.

    Attributes:
        groups: Names of its groups.
    """

    def __init__(self, text: str) -> None:
        try:
            re.compile(text)  # says where and what is wrong, which RE2 does not
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(f"it is no regular expression: {error}") from None
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            raise PatternError(_said(text, error)) from None
        except UnicodeError as error:
            raise PatternError(f"it is no text: {error}") from None
        self.groups = frozenset(self._compiled.groupindex)

    def search(self, line: str) -> dict[str, str] | None:
        """Return the text of each named group that has taken part; None without a match."""
        found = self._compiled.search(line)
        if found is None:
            return None
        return {name: text for name, text in found.groupdict().items() if text is not None}


def _said(text: str, error: Exception) -> str:
    said = error.args[0] if error.args else ""
    said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if any(words in said for words in _TOO_LARGE):
        return "it is too long, or repeats too much: use * instead of large counts"
    found = _REFUSED.fullmatch(said)
    part = found["part"] if found else ""
    at = text.find(part) if part else -1
    where = f"'{part}' at character {at + 1}" if at >= 0 else said
    return (
        f"{where} needs time without bound, or is not known to RE2; use groups as (?P<step>...), "
        "(?:...), classes, |, *, +, ?, {m,n}, ^, $ and \\b"
    )
