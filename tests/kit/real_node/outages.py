"""When programs of a node were away, by the moments at which the test ended and started them.

Times are seconds since the epoch, as they are compared with what the kubelet writes: whole seconds.
"""

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

_REGISTERED = re.compile(
    r"^(\S+ \S+),(\d+) INFO .*: (\S+) is registered with the kubelet$", re.MULTILINE
)


class Outages:
    """Of each program, by its name."""

    def __init__(self) -> None:
        self._of: dict[str, list[tuple[float, float]]] = {}

    def began(self, program: str, at: float) -> None:
        """It is away from now on."""
        self._of.setdefault(program, []).append((at, math.inf))

    def ended(self, program: str, at: float) -> None:
        """It is back since then."""
        began, _ = self._of[program].pop()
        self._of[program].append((began, at))

    def covers(self, programs: Iterable[str], at: float, slack: float = 0.0) -> bool:
        """Whether any was away in this second, or so many seconds before it."""
        return any(
            began < at + 1 and at <= end + slack
            for program in programs
            for began, end in self._of.get(program, ())
        )

    def overlap(self, program: str, since: float, until: float) -> float:
        """Seconds in which it was away, of those between two moments."""
        return sum(
            max(0.0, min(end, until) - max(began, since))
            for began, end in self._of.get(program, ())
        )

    def longest(self, program: str) -> float:
        """Seconds of the longest."""
        return max((end - began for began, end in self._of.get(program, ())), default=0.0)


def registered(log: Path, resources: Iterable[str], since: float) -> float:
    """When the last of these was registered for the first time since then, by the agent's log.

    Raises:
        LookupError: One was not.
    """
    found: dict[str, float] = {}
    for day, thousandths, resource in _REGISTERED.findall(log.read_text()):
        moment = datetime.fromisoformat(day).timestamp() + int(thousandths) / 1000
        if moment >= since:
            found.setdefault(resource, moment)
    return max(found[resource] for resource in resources)


def second(text: str | None) -> float:
    """A time as the API has it; 0 if there is none, or none that means something."""
    if not text:
        return 0.0
    return max(0.0, datetime.fromisoformat(text).astimezone(UTC).timestamp())
