"""Which lines have been seen, so that a log can be asked for again from a little earlier.

The server takes whole seconds for a start, and two streams of a container may cross by a moment.
So a log is asked for again from a full second before the last line, and each line that was seen in
that time is left out, told by its time in nanoseconds.
"""

from collections import Counter

from alnair.kube.pod_logs.stamped_lines import NANOSECONDS, LogLine

#: Seconds before the last line from which a log is asked for again.
_BACK = 1
#: Lines of these two seconds that are remembered; a container that writes faster may be repeated.
_MOST = 200_000


class SeenLines:
    """Remembers the lines of the last two seconds, and where to go on.

    Args:
        since: Seconds since the epoch from which lines are wanted; None for all.
    """

    def __init__(self, since: float | None = None) -> None:
        self._since = since
        self._by_second: dict[int, Counter[int]] = {}
        self._last = -1
        self._repeated: Counter[int] = Counter()

    @property
    def since(self) -> int | None:
        """From which second on the log is to be asked for, None for all of it."""
        if self._last >= 0:
            return self._last - _BACK
        return None if self._since is None else int(self._since)

    def again(self) -> None:
        """Note that the log is read again from `since`: what was seen comes once more."""
        self._repeated = Counter()
        for lines in self._by_second.values():
            self._repeated += lines

    def is_new(self, line: LogLine) -> bool:
        """Tell whether a line was not seen before, and remember it."""
        if self._repeated.get(line.at, 0) > 0:
            self._repeated[line.at] -= 1
            return False
        if self._since is not None and line.at < self._since * NANOSECONDS:
            return False
        second = line.at // NANOSECONDS
        if second > self._last:
            self._last = second
            kept = {s: of for s, of in self._by_second.items() if s >= second - _BACK}
            self._by_second = kept
        if second >= self._last - _BACK:
            lines = self._by_second.setdefault(second, Counter())
            if len(lines) < _MOST:
                lines[line.at] += 1
        return True
