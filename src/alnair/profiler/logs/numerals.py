"""Numbers as people and programs print them, and the expressions that find them.

All of these are bounded in length, so that no line makes them slow.
"""

#: Digits, with or without commas between thousands.
INTEGER = r"(?:\d{1,3}(?:,\d{3}){1,5}(?!,?\d)|\d{1,18})"
#: Any number, NaN and infinity too.
NUMBER = (
    r"[-+]?(?:(?:\d{1,3}(?:,\d{3}){1,5}(?!\d)|\d{1,18})(?:\.\d{0,20})?|\.\d{1,20})"
    r"(?:[eE][-+]?\d{1,3})?|[-+]?(?:nan|inf(?:inity)?)\b"
)
#: A number that cannot be negative, with a unit of scale.
SCALED = r"\d{1,15}(?:\.\d{1,6})?[kMGT]?"
#: 5, 1:05, 2:01:05.
CLOCK = r"(?:\d{1,4}:)?\d{1,4}:\d{2}"

_SCALES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def integer(text: str | None) -> int | None:
    """Return it as a number; None for None."""
    return None if text is None else int(text.replace(",", ""))


def number(text: str | None) -> float | None:
    """Return it as a number; None for None."""
    return None if text is None else float(text.replace(",", ""))


def scaled(text: str) -> int:
    """Return 1500 for "1.5k", as bars write large counts."""
    scale = _SCALES.get(text[-1:])
    return round(float(text[:-1]) * scale) if scale else round(float(text))


def seconds(clock: str) -> float:
    """Return 65 for "1:05"."""
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + int(part)
    return total
