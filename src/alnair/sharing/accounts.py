"""GPU time of one process by two accounts: what its page says it was charged, and what NVML saw.

Both sums forget what is long ago, so that a page that was true for a day and then is not, is found.
Honest accounts differ, too: streams that overlap are each charged in full until the price is
corrected, a kernel is charged when it is launched, NVML comes late. None of that makes one of them
many times the other for half a minute.
"""

import math
from typing import Final

import msgspec

#: Seconds after which an entry counts a third.
MEMORY: Final = 60.0
#: How many times the one may be the other, and the GPU seconds beyond that.
MORE_CHARGED: Final = 8.0
MORE_USED: Final = 4.0
SLACK: Final = 5.0


class ProcessAccount(msgspec.Struct, frozen=True):
    """GPU seconds of one process in about the last minute, by its page and by NVML."""

    charged: float = 0.0
    used: float = 0.0

    @property
    def is_overcharged(self) -> bool:
        """Whether its page claims work that nobody saw."""
        return self.charged > MORE_CHARGED * self.used + SLACK

    @property
    def is_undercharged(self) -> bool:
        """Whether it worked much more than its page says."""
        return self.used > MORE_USED * self.charged + SLACK


def entered(
    before: ProcessAccount, *, charged: float, used: float, seconds: float
) -> ProcessAccount:
    """Return the account after one more look.

    Args:
        before: Until now.
        charged: GPU seconds by its page since the last look; below 0 where a price was settled.
        used: GPU seconds by NVML.
        seconds: Since the last look.
    """
    kept = math.exp(-max(0.0, seconds) / MEMORY)
    return ProcessAccount(
        max(0.0, before.charged * kept + charged), before.used * kept + max(0.0, used)
    )
