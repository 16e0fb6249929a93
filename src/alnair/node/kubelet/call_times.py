"""How long the kubelet's calls take: plain numbers, of which the process makes metrics."""

from typing import Final

from alnair.scheduler.metric_counters import Histogram

#: Seconds. An `Allocate` reads nothing; a start asks the kubelet, and may be held for 10 s.
BOUNDS: Final = (
    *(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
)


class CallTimes:
    """Seconds of calls.

    Attributes:
        by: (method, `ok`, `refused` or `error`) → them.
    """

    def __init__(self) -> None:
        self.by: dict[tuple[str, str], Histogram] = {}

    def took(self, method: str, result: str, seconds: float) -> None:
        """Count a call that has ended."""
        found = self.by.get((method, result))
        if found is None:
            found = self.by[method, result] = Histogram(BOUNDS)
        found.observe(seconds)
