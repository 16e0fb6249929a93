"""Shows how far a replay is: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from alnair.live.replay.ledger import Counts

#: Seconds between two lines where there is no terminal.
_PAUSE: Final = 5.0


class ReplayDisplay:
    """Writes to stderr, so that stdout is for results. Use as a context manager."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task("placing pods", total=None, said="")
        self._next = time.monotonic() + _PAUSE

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def step(self, text: str) -> None:
        """Tell what happens next."""
        self.console.print(text, markup=False)

    def progress(self, what: str, done: int, total: int) -> None:
        """Tell how far a step is; only its end is worth a line."""
        if total and done == total:
            self.step(f"{what}: done")

    def show(self, counts: Counts) -> None:
        """Tell how far the replay is."""
        said = f"{counts.there} created, {counts.refused} refused"
        self._bar.update(self._task, completed=counts.placed, total=counts.pods, said=said)
        if self._bar.disable and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PAUSE
            self.step(f"{counts.placed} of {counts.pods} pods placed; {said}")
