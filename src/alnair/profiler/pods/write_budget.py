"""How many writes an agent may make: so many a second over time, whatever happens on its node.

A rule that says what is news bounds nothing: on a node whose figures jump, all is news. What may
be said is therefore bounded, too, and what matters most is said first. The sum over all nodes is
bounded by the sum of their budgets.
"""

import zlib
from typing import Final

#: Writes a second of one agent, of figures and of what pods do: 58 a second on 1,000 nodes.
FIGURES_RATE: Final = 0.04
WORKLOADS_RATE: Final = 0.018
#: Writes at once: more than those of one job that begins or ends on a node.
BURST: Final = 10.0


class WriteBudget:
    """Tokens, one for each write; they come at a rate, and some are kept for later.

    Args:
        rate: Tokens a second.
        burst: The most that are kept.
        who: Whose they are. Agents that began together have the next token at different times.

    Attributes:
        put_off: Writes so far that had to wait.
    """

    #: What must be left after a write, in parts of the burst: of small news, of other news, and of
    #: news for which others wait, which may be a debt. Begins and ends of pods are always told; the
    #: others pay for them.
    SMALL: Final = 0.5
    PLAIN: Final = 0.0
    URGENT: Final = -1.0
    ALWAYS: Final = float("-inf")

    def __init__(self, rate: float, burst: float = BURST, who: str = "") -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst - (turn(who, 1.0) if who else 0.0)
        self._at: float | None = None
        self.put_off = 0

    def take(self, now: float, least: float) -> bool:
        """Take a token for a write, if then enough are left; else it is to be tried later.

        Args:
            now: Seconds, by one clock.
            least: One of the constants.
        """
        if self._at is not None:
            grown = max(0.0, now - self._at) * self._rate
            self._tokens = min(self._burst, self._tokens + grown)
        self._at = now
        if self._tokens - 1 < least * self._burst:
            self.put_off += 1
            return False
        self._tokens -= 1
        return True


def turn(name: str, every: float) -> float:
    """Return when an agent begins in each span of time, in seconds: others begin at other times.

    Args:
        name: Of its node.
        every: The span, seconds.
    """
    return every * zlib.crc32(name.encode()) / (1 << 32)
