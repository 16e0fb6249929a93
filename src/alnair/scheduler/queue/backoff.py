"""How long a unit waits after a failed attempt.

Source: kube-scheduler's defaults, podInitialBackoffSeconds and podMaxBackoffSeconds.
"""

from typing import Final

#: Seconds after the first failure; each further one doubles them.
FIRST_BACKOFF: Final = 1.0
#: Seconds that no wait exceeds.
LAST_BACKOFF: Final = 10.0


def backoff(attempts: int) -> float:
    """Return the seconds to wait after so many failed attempts."""
    return min(FIRST_BACKOFF * 2.0 ** max(0, min(attempts, 30) - 1), LAST_BACKOFF)
