"""Placement cases."""

from conformance.document import Case
from conformance.outcome import NotCoveredError


def check(name: str, case: Case) -> None:
    """Raise unless the case is decided as expected."""
    raise NotCoveredError(f"placement cases of {name}: {', '.join(case.want)}")
