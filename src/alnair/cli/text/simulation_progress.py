"""Shows how far a simulation is: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from alnair.sim.simulation import Simulation

#: Seconds between two looks on a terminal, and between two lines elsewhere.
_REFRESH: Final = 0.25
_PAUSE: Final = 10.0
_DAY: Final = 86400.0


class ClusterDisplay:
    """Writes to stderr, so that stdout is for results. Use as a context manager.

    Args:
        simulation: what it shows.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("simulating"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} jobs"),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=simulation.progress.jobs, said="")
        self._began = self._looked = time.perf_counter()
        self._from = simulation.time

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

    def show(self) -> None:
        """Tell how far the simulation is, if it is time to."""
        now = time.perf_counter()
        if now < self._looked + (_PAUSE if self._bar.disable else _REFRESH):
            return
        self._looked = now
        progress = self._simulation.progress
        simulated = self._simulation.time
        speed = (simulated - self._from) / (now - self._began)
        said = (
            f"day {simulated / _DAY:.2f}, {speed:,.0f} times real time, "
            f"{progress.submitted - progress.finished} jobs there, "
            f"{self._simulation.pods_waiting()} pods waiting"
        )
        if self._bar.disable:
            self._console.print(
                f"{progress.finished} of {progress.jobs} jobs finished; {said}", markup=False
            )
        else:
            self._bar.update(self._task, completed=progress.finished, said=said)
