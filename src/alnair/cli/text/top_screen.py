"""The live screen of `alnair top`: one view at a time, by keys."""

import asyncio
import contextlib
import os
import termios
import tty
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from alnair.cli.text.use_tables import table, titles
from alnair.kube.errors import KubeError
from alnair.live.usage.use import ClusterUse

_VIEWS: Final = {"n": "nodes", "g": "gpus", "p": "pods", "o": "owners", "w": "work"}
_QUIT: Final = ("q", "\x1b", "\x03")
#: Lines that are not the table's rows: title, head, "and 7 more", notes.
_FRAME: Final = 6


class Screen:
    """What is shown, and what the keys have chosen.

    Args:
        view: Shown first.
        interval: Seconds between two looks.
        keyboard: Descriptor of the terminal that keys come from; 0 is stdin.
        console: Of the terminal.
    """

    def __init__(
        self, view: str, interval: float, keyboard: int = 0, console: Console | None = None
    ) -> None:
        self.view = str(view)
        self.sort_by: int | None = None
        self.is_reversed = False
        self.is_over = False
        self._interval = interval
        self._keyboard = keyboard
        self._console = console if console is not None else Console(highlight=False)
        self._use: ClusterUse | None = None
        self._problem = ""
        self._pressed = asyncio.Event()

    def press(self, key: str) -> None:
        """Do what a key asks for; others do nothing."""
        if key in _QUIT:
            self.is_over = True
        elif key in _VIEWS:
            self.view, self.sort_by, self.is_reversed = _VIEWS[key], None, False
        elif key == "s":
            after = -1 if self.sort_by is None else self.sort_by
            self.sort_by = (after + 1) % len(titles(self.view))
        elif key == "r":
            self.is_reversed = not self.is_reversed
        self._pressed.set()

    async def run(self, look: Callable[[], Awaitable[ClusterUse]]) -> None:
        """Look and show until a key ends it; a look that fails is said, and tried again."""
        with (
            _keys(self._keyboard, self.press),
            Live(console=self._console, screen=True, auto_refresh=False) as live,
        ):
            looking = asyncio.create_task(self._look(look))
            try:
                while not self.is_over:
                    live.update(self.shown(), refresh=True)
                    self._pressed.clear()
                    await self._pressed.wait()
            finally:
                looking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await looking

    async def _look(self, look: Callable[[], Awaitable[ClusterUse]]) -> None:
        while True:
            try:
                self._use, self._problem = await look(), ""
            except (KubeError, OSError) as error:
                self._problem = f"the cluster cannot be read: {error}"
            self._pressed.set()
            await asyncio.sleep(self._interval)

    def shown(self) -> RenderableType:
        """Return what is on the screen."""
        keys = "  ".join(f"{key} {name}" for key, name in _VIEWS.items())
        parts: list[RenderableType] = [
            Text(f"alnair top: {self.view}   [{keys}  s sort  r reverse  q quit]", style="bold")
        ]
        if self._problem:
            parts.append(Text(self._problem, style="red"))
        if self._use is None:
            if not self._problem:
                parts.append(Text("looking ..."))
            return Group(*parts)
        room = max(3, self._console.size.height - _FRAME - len(self._use.notes))
        parts.append(
            table(
                self._use,
                self.view,
                sort_by=self.sort_by,
                is_reversed=self.is_reversed,
                most=room,
            )
        )
        parts += [Text(f"note: {note}", style="dim") for note in self._use.notes]
        return Group(*parts)


@contextlib.contextmanager
def _keys(number: int, press: Callable[[str], None]) -> Iterator[None]:
    """Have each key of the terminal pressed at once, unseen; the terminal is put back after."""
    if not os.isatty(number):
        yield
        return
    before = termios.tcgetattr(number)
    loop = asyncio.get_running_loop()

    def read() -> None:
        data = os.read(number, 64).decode(errors="ignore")
        if not data:  # the terminal has gone
            press("q")
        # An arrow key begins with escape, and is no wish to end.
        for key in [data] if data.startswith("\x1b") else data:
            press(key)

    tty.setcbreak(number)
    loop.add_reader(number, read)
    try:
        yield
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
