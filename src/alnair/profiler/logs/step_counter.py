"""Steps that a program has done, from its output, with the parser or by counting lines."""

from alnair.profiler.logs.linear_pattern import LinearPattern, PatternError
from alnair.profiler.logs.lines import LineReader
from alnair.profiler.logs.parser import LineParser
from alnair.profiler.logs.position import Place
from alnair.profiler.logs.user_pattern import UserPattern


class StepCounter:
    """Follows one program's output.

    Args:
        pattern: With a group `step` or others of `UserPattern`: reads the number; without groups:
            each line that it matches is one step; None: the known formats are read.

    Raises:
        PatternError: The pattern cannot be used.

    Attributes:
        done: Steps done by now; None before there was one. It never goes back.
    """

    def __init__(self, pattern: str | None = None) -> None:
        self._lines = LineReader()
        self._matches: LinearPattern | None = None
        self._parser = LineParser()
        self._place = Place()
        self._last: float | None = None
        self.done: float | None = None
        if pattern is not None:
            compiled = LinearPattern(pattern)
            if compiled.groups:
                self._parser = LineParser(UserPattern(pattern))
            else:
                self._matches = compiled
                if self._matches.search("") is not None:
                    raise PatternError("it matches an empty line, and so every one")

    def feed(self, data: bytes) -> bool:
        """Take output; return whether steps were done."""
        before = self.done
        for line in self._lines.feed(data):
            if self._matches is not None:
                if self._matches.search(line) is not None:
                    self.done = (self.done or 0) + 1
            else:
                self._read(line)
        return self.done != before

    def _read(self, line: str) -> None:
        found = self._parser.read(line)
        position = self._place.take(found) if found else None
        if position is None:
            return
        # A count that goes back begins anew: what it did until then stays done.
        more = 0.0 if self._last is None else max(0.0, position.done - self._last)
        self._last = position.done
        self.done = (self.done or 0.0) + more
