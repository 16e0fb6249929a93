"""Kubernetes quantities as exact fractions."""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([a-zA-Z]*|[eE][+-]?\d+)")
_SUFFIXES: Final = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}


class UnreadableError(ValueError):
    """An object that does not say what it should; the message says which part."""


@lru_cache(maxsize=65536)
def amount(text: str | int) -> Fraction:
    """Return a quantity, exactly.

    Raises:
        UnreadableError: It is none.
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise UnreadableError(f"{text!r} is no quantity")
    number, suffix = match.groups()
    if suffix in _SUFFIXES:
        return Fraction(number) * _SUFFIXES[suffix]
    if re.fullmatch(r"[eE][+-]?\d{1,3}", suffix):
        return Fraction(number + suffix)
    raise UnreadableError(f"{text!r} is no quantity: suffix {suffix!r}")


def shown(value: Fraction) -> int | float:
    """Return an amount for people and JSON: a whole number where it is one."""
    return value.numerator if value.denominator == 1 else float(value)
