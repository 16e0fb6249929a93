"""Shows steps and progress: a bar on a terminal, one line per step elsewhere."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Display:
    """Writes to stderr, so that stdout is for results. Use as a context manager.

    Args:
        quiet: Show nothing at all.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

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
        """Shows that a step begins."""
        if not self._quiet:
            self._console.print(text, markup=False)

    def progress(self, what: str, done: int, total: int) -> None:
        """Moves the bar of `what`; without a terminal, says when it is done."""
        if self._bars.disable:
            if done == total and not self._quiet:
                self._console.print(f"{what}: done", markup=False)
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
            self._console.print(f"{what}: done", markup=False)
