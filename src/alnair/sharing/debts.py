"""GPU time by the driver's account: what a tenant owes, whatever its own counters say.

The library in a container keeps account in memory that its processes can write. The server keeps a
second one, of what NVML measured and what was granted, and writes into the tenant's read-only page
the moment before which nothing may be launched. So what a tenant writes into its own account can
only make it slower: who sets it back runs into this one.
"""

from typing import Final

import msgspec

#: Share beyond what was granted that is no debt: NVML gives whole percents, kernels reach over.
MARGIN: Final = 0.015
#: And for each whole GPU by which its figures add up to more than there is.
MARGIN_INEXACT: Final = 0.25
#: GPU seconds that may be used ahead: what the library saves up and queues, and NVML's lateness.
AHEAD: Final = 0.5
#: GPU seconds that are owed at most: one wrong figure must not stop a tenant for long.
MOST: Final = 30.0
#: Seconds for which a tenant is stopped at most until the next look finds the same.
HOLD: Final = 2.5
#: Looks over which the largest grant counts: what NVML shows may be of before it became smaller.
LATE: Final = 3
#: Seconds of GPU time charged beyond what was granted that are paid off later, not forgotten.
MOST_CARRIED: Final = 60.0


class Debt(msgspec.Struct, frozen=True):
    """What a tenant owes on one GPU.

    Attributes:
        owed: GPU seconds used beyond what was granted; below 0 down to -`AHEAD`.
        granted: Shares granted at the last looks.
    """

    owed: float = -AHEAD
    granted: tuple[float, ...] = ()

    @property
    def is_near(self) -> bool:
        """Whether it lives off what it was not granted: who keeps to its grant is far from here."""
        return self.owed > -AHEAD / 2

    @property
    def hold(self) -> float:
        """Seconds from now in which it may launch nothing."""
        if self.owed <= 0 or not self.granted:
            return 0.0
        return min(HOLD, self.owed / max(self.granted[-1], 0.001))


def inexact(told: float) -> float:
    """Return the share by which NVML's figures of a GPU may be wrong, that add up to `told`."""
    return MARGIN_INEXACT * max(0.0, told - 1.0)


def owe(before: Debt, *, used: float, granted: float, seconds: float, margin: float = 0.0) -> Debt:
    """Return the debt after one more look.

    Args:
        before: Until now.
        used: Share that NVML measured since the last look.
        granted: Share that was granted since, at most.
        seconds: Since the last look.
        margin: Share by which that figure may be wrong, beside `MARGIN`.
    """
    grants = (*before.granted, granted)[-LATE:]
    owed = before.owed + (used - max(grants) - MARGIN - margin) * seconds
    return Debt(min(MOST, max(-AHEAD, owed)), grants)


def payable(carried: float, charged: float, granted: float) -> tuple[float, float]:
    """Divide what a tenant says it was charged into what it can have been, and the rest.

    No library charges more than was granted: it waits. Only a long kernel is charged at once, and
    waited for afterwards; so the rest is carried over. Without this a tenant that writes that it
    was charged more than it used would have its price lowered for it.

    Args:
        carried: GPU seconds of before.
        charged: GPU seconds that it says it was charged since the last look.
        granted: GPU seconds that were granted since.

    Returns:
        GPU seconds that are believed now, and those that are carried over.
    """
    total = carried + max(0.0, charged)
    paid = min(total, granted + MARGIN)
    return paid, min(MOST_CARRIED, total - paid)
