"""Shows steps and progress on stderr: a bar on a terminal, lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

#: Seconds between two looks at a count on a terminal.
_REFRESH: Final = 0.25


class _Shown:
    """A console and bars on stderr, so that stdout is for results. Use as a context manager."""

    def __init__(self, *columns: ProgressColumn) -> None:
        self._console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            *columns,
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def step(self, text: str) -> None:
        """Show that a step begins."""
        self._console.print(text, markup=False)


class Display(_Shown):
    """Shows steps, each with a bar of its own if it takes a while."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._tasks: dict[str, TaskID] = {}

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar of `what`; without a terminal, say when it is done."""
        if self._bars.disable:
            if done == total:
                self.step(f"{what}: done")
            return
        if not self._tasks:
            self._bars.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)
        if done == total:
            self._bars.remove_task(self._tasks.pop(what))
            if not self._tasks:
                self._bars.stop()
            self.step(f"{what}: done")


class CountDisplay(_Shown):
    """Shows how many of something are done, with a sentence beside it.

    Args:
        doing: What is done, beside the bar.
        counted: What is counted: `3 of 7 jobs finished` has "jobs finished".
        pause: Seconds between two lines where there is no terminal.
    """

    def __init__(self, doing: str, counted: str, *, pause: float) -> None:
        super().__init__(
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
        )
        self._counted = counted
        self._wait = pause if self._bars.disable else _REFRESH
        self._task = self._bars.add_task(doing, total=0, said="")
        self._next = time.monotonic() + self._wait

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def progress(self, what: str, done: int, total: int) -> None:
        """Tell how far another step is; only its end is worth a line."""
        if total and done == total:
            self.step(f"{what}: done")

    @property
    def is_due(self) -> bool:
        """Whether it is time to `show` anew."""
        return time.monotonic() >= self._next

    def show(self, done: int, total: int, said: str) -> None:
        """Show how many are done, with a sentence; call it when it `is_due`."""
        self._next = time.monotonic() + self._wait
        if self._bars.disable:
            self.step(f"{done} of {total} {self._counted}; {said}")
        else:
            self._bars.update(self._task, completed=done, total=total, said=said)
