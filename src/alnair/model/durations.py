"""Spans of time, as people write them: `90s`, `45m`, `24h`, `7d`, `2w`."""

import contextlib
import re
from datetime import UTC, datetime
from typing import Final

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
#: Days that have a name: how many ago they were.
_DAYS: Final = {"today": 0, "yesterday": 1}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])")


def seconds(text: str) -> float:
    """Return the seconds of a span such as `24h` or `1d12h`.

    Raises:
        ValueError: it is none.
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(
            f"{text!r} is no span of time: write a number and s, m, h, d or w, as in 24h"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def moment(text: str, now: float) -> float:
    """Return a time, seconds since the epoch: `7d` before now, or one in ISO 8601 (UTC by default).

    `today` and `yesterday` are when those days began, in UTC.

    Raises:
        ValueError: It is neither.
    """
    if text in _DAYS:
        return (now // _UNITS["d"] - _DAYS[text]) * _UNITS["d"]
    with contextlib.suppress(ValueError):
        return now - seconds(text)
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def span(amount: float) -> str:
    """Return the span in at most two units, rounded: `45s`, `2h 5m`."""
    left = round(amount)
    if left < 1:
        return "0s"
    found: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(left, size)
        if count or found:
            found.append(f"{count}{unit}")
            left = rest
        if len(found) == 2:
            break
    return " ".join(part for part in found if not part.startswith("0"))
