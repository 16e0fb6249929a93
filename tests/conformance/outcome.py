"""What can come of a case."""

import enum

import msgspec


class Outcome(enum.Enum):
    """How a case counts."""

    PASSED = "passed"
    FAILED = "failed"
    #: Needs feature gates that are not modelled; reported apart.
    GATED = "gated"
    #: Is about waiting in Permit, which is not how gangs are decided here; reported apart.
    COSCHEDULING_PERMIT = "coscheduling_permit"


class Verdict(msgspec.Struct, frozen=True):
    """An outcome, and why it is not a pass."""

    outcome: Outcome
    why: str = ""


class NotCoveredError(Exception):
    """The case asks for something that is not built; the text names it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not covered: {what}")


class Mismatch(AssertionError):  # noqa: N818 - it is an answer, not a mistake of the program
    """We decide otherwise than the case expects."""


def same(what: str, ours: object, theirs: object) -> None:
    """Raise a mismatch unless both are equal."""
    if ours != theirs:
        raise Mismatch(f"{what}: {ours!r} here, {theirs!r} expected")
