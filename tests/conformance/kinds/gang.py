"""Gang cases, as far as gangs are decided whole here too."""

from typing import Final

from conformance.document import Case
from conformance.outcome import NotCoveredError

#: Expectations about pods that hold their place and wait in Permit until the gang is complete, or
#: until PostFilter rejects them. Gangs are decided whole here, so nothing ever waits there.
PERMIT: Final = frozenset({"permit", "gang_permit", "postfilter"})


def check(name: str, case: Case) -> None:
    """Raise unless the gang is decided as expected."""
    raise NotCoveredError(f"gang cases of {name}: {', '.join(case.want)}")
