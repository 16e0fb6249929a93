"""Kubernetes quantities, exact, as integers.

Grammar and rounding follow `k8s.io/apimachinery/pkg/api/resource`: a value finer than one nano is
rounded away from zero to a nano, and reading a quantity in a coarser unit always rounds up, since
whoever asks for some of a resource must get at least that.
"""

import re
from decimal import ROUND_UP, Decimal, localcontext
from typing import Final

NANO: Final = 10**9
#: Quantities are capped here, as Kubernetes caps them (the largest int64).
MAX: Final = 2**63 - 1

_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,18})?"
)
_PLAIN = re.compile(r"[0-9]{1,18}")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
#: Nanos of one, by suffix: for whole numbers, as nearly all are.
_NANOS: Final[dict[str, int]] = {
    **{suffix: 10 ** (9 + exponent) for suffix, exponent in _DECIMAL.items()},
    **{suffix: (1 << exponent) * NANO for suffix, exponent in _BINARY.items()},
}
# Exponents beyond these cannot matter: such a value is above the cap or below a nano.
_LARGEST_EXPONENT = 40


class QuantityError(ValueError):
    """A text that is no Kubernetes quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(
            f"{text!r} is not a quantity: write a number with an optional suffix "
            "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as 1e3)"
        )


def nanos(text: str | int) -> int:
    """Parse a quantity into nanos (10⁻⁹ of its unit), exactly.

    Raises:
        QuantityError: the text does not follow the grammar.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return max(-MAX, min(text, MAX)) * NANO
    match = _GRAMMAR.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise QuantityError(text)
    suffix = match["suffix"] or ""
    if (one := _NANOS.get(suffix)) and match["number"].isdigit() and len(match["number"]) < 20:
        scaled = min(int(match["number"]) * one, MAX * NANO)
        return -scaled if match["sign"] == "-" else scaled
    with localcontext() as context:
        context.prec = max(64, len(match["number"]) + 2 * _LARGEST_EXPONENT)
        value = Decimal(match["number"])
        if suffix in _BINARY:
            value *= 2 ** _BINARY[suffix]
        elif suffix in _DECIMAL:
            value = value.scaleb(_DECIMAL[suffix])
        else:
            exponent = int(suffix[1:])
            value = value.scaleb(max(-_LARGEST_EXPONENT, min(exponent, _LARGEST_EXPONENT)))
        scaled = int(min(value, Decimal(MAX)).scaleb(9).to_integral_value(rounding=ROUND_UP))
    return -scaled if match["sign"] == "-" else scaled


def value(text: str | int) -> int:
    """Return the quantity in whole units, rounded up in magnitude (bytes, pods, devices)."""
    if isinstance(text, str) and _PLAIN.fullmatch(text):
        return int(text)
    return _coarser(nanos(text), NANO)


def milli_value(text: str | int) -> int:
    """Return the quantity in thousandths, rounded up in magnitude (CPU: millicores)."""
    return _coarser(nanos(text), NANO // 1000)


def _coarser(amount: int, unit: int) -> int:
    rounded = -(-abs(amount) // unit)
    return rounded if amount >= 0 else -rounded
