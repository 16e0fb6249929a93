"""What `alnair doctor` found, as lines of text."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from alnair.doctor.finding import Found, Level
from alnair.model.plurals import counted

_LEVEL: Final = max(len(one) for one in Level)
#: The longest name of a check.
_CHECK: Final = len("policies-in-force")


def line(one: Found) -> str:
    """Return the row of a finding, and below it what mends it."""
    it = one.finding
    head = f"{it.level.value:<{_LEVEL}}  {one.check:<{_CHECK}}  "
    row = head + (f"{it.where}: {it.what}" if it.where else it.what)
    return f"{row}\n{' ' * len(head)}fix: {it.fix}" if it.fix else row


def summary(found: Iterable[Found]) -> str:
    """Return how many of each level there are."""
    count = Counter(one.finding.level for one in found)
    if not count[Level.WARNING] and not count[Level.ERROR]:
        return f"all is well: {counted(count[Level.OK], 'finding')}"
    error, warning = counted(count[Level.ERROR], "error"), counted(count[Level.WARNING], "warning")
    return f"{error}, {warning}, {count[Level.OK]} ok"
