"""Whether a GPU can be given to containers: what XID errors and unanswered questions mean.

An XID is a number by which the NVIDIA driver reports an error. Most of them are a program's own
fault and say nothing about the GPU. The classes follow the column "immediate action" of NVIDIA's
catalogue (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): what asks to
restart the application or nothing is a program's; what asks for a reset stays until there was one.
63, 92 and 94 are graver here than there: the memory of that GPU was just found bad, so no new
container comes to it for a while. Besides, 109 is a program's, as for NVIDIA's own device plugin,
though the catalogue asks for a reset: a kernel that does not yield is its most common cause.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Severity(StrEnum):
    """What an XID says of the GPU."""

    #: Nothing: a program went wrong.
    PROGRAM = "program"
    #: It may be bad: nothing new for it, until it has answered well for a while.
    PASSING = "passing"
    #: It is bad until it was reset.
    RESET = "reset"


#: A program's own fault, or for information only.
_PROGRAM: Final = frozenset(
    {8, 11, 13, 14, 25, 31, 32, *range(37, 42), 43, 44, 45, 60, *range(66, 73), 75, 76, 77, 80}
    | {*range(82, 87), 88, 89, 93, *range(96, 110), 121, *range(126, 136), 137, 139, 141}
    | {142, 152, 153, 154, 160, 161}
)
#: What they mean, in words; only a reset of the GPU, or of the machine, helps.
_RESET: Final = {
    46: "the GPU stopped processing",
    48: "double-bit ECC error",
    62: "internal micro-controller halt",
    64: "GPU memory could not be remapped",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    95: "uncontained memory error",
    110: "security fault",
    119: "the GPU's system processor does not answer",
    120: "error of the GPU's system processor",
    136: "NVLink training failed",
    140: "unrecovered ECC error",
    143: "the GPU could not be initialised",
    151: "key rotation error",
    155: "NVLink error",
    156: "parts of the GPU were retired",
    158: "fatal timeout of the GPU",
}
_PASSING: Final = {
    63: "GPU memory was remapped",
    92: "many single-bit ECC errors",
    94: "contained memory error",
}


def severity(xid: int) -> Severity:
    """Return what an XID says; one that nobody knows is no proof of either, and passes."""
    if xid in _PROGRAM:
        return Severity.PROGRAM
    return Severity.RESET if xid in _RESET else Severity.PASSING


def sentence(xid: int) -> str:
    """Return an XID in words."""
    words = _RESET.get(xid) or _PASSING.get(xid)
    return f"XID {xid}: {words}" if words else f"XID {xid}"


class HealthRules(msgspec.Struct, frozen=True):
    """When a GPU is trusted again: so many good answers in a row, over so many seconds."""

    answers: int = 10
    seconds: float = 30.0


class GpuHealth(msgspec.Struct, frozen=True):
    """What is known of one GPU.

    Attributes:
        reason: Why it is not healthy, or "".
        needs_reset: Good answers alone do not heal it.
        was_away: It has not answered since the error that needs a reset.
        opened: How often NVML had been opened at that error.
        answers: Good ones in a row.
        answers_since: When the first of them came.
    """

    reason: str = ""
    needs_reset: bool = False
    was_away: bool = False
    opened: int = 0
    answers: int = 0
    answers_since: float = 0.0

    @property
    def is_healthy(self) -> bool:
        """Whether containers may be given this GPU."""
        return not self.reason


def after_xid(before: GpuHealth, xid: int, *, opened: int) -> GpuHealth:
    """Return the state after an error that the driver reported.

    Args:
        before: The last state.
        xid: The error.
        opened: How often NVML has been opened so far.
    """
    grade = severity(xid)
    if grade is Severity.PROGRAM:
        return before
    is_graver = grade is Severity.RESET and not before.needs_reset
    return GpuHealth(
        # Of several, the first one is told: it is the cause, most often.
        reason=sentence(xid) if is_graver or before.is_healthy else before.reason,
        needs_reset=before.needs_reset or grade is Severity.RESET,
        was_away=before.was_away and grade is not Severity.RESET,
        opened=opened if grade is Severity.RESET else before.opened,
    )


def after_answer(
    before: GpuHealth,
    problem: str,
    *,
    now: float,
    opened: int,
    rules: HealthRules = HealthRules(),  # noqa: B008 (frozen)
) -> GpuHealth:
    """Return the state after NVML was asked for the GPU.

    A GPU that was reset is lost to those who had NVML open; it answers those who open it anew. So
    a reset is over when the GPU has been away since the error, and answers a later opening.

    Args:
        before: The last state.
        problem: Why it does not answer; "" if it does.
        now: Seconds.
        opened: How often NVML has been opened so far.
        rules: When it is healthy again.
    """
    if problem:
        return msgspec.structs.replace(
            before,
            reason=before.reason or problem,
            was_away=before.needs_reset,
            answers=0,
        )
    if before.is_healthy:
        return before
    if before.needs_reset and not (before.was_away and opened > before.opened):
        return before
    answers = before.answers + 1
    since = before.answers_since if before.answers else now
    if answers >= rules.answers and now - since >= rules.seconds:
        return GpuHealth()
    return msgspec.structs.replace(before, answers=answers, answers_since=since)
