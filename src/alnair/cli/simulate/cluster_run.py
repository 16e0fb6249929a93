"""Carries out a simulation of a cluster: progress, checkpoints, interrupts, results."""

import contextlib
import gc
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import typer

from alnair.cli.text import simulation_result
from alnair.cli.text.simulation_progress import ClusterDisplay
from alnair.history import history_file
from alnair.history.metrics import compute
from alnair.sim import checkpoint
from alnair.sim.simulation import Simulation

#: Moments between two looks at the clock on the wall: a quarter of a second, or less.
_SLICE: Final = 100
#: Checkpoints take at most about this part of the time.
_SHARE: Final = 0.05
UNWRITABLE: Final = 1
INTERRUPTED: Final = 130


class PlaceError(Exception):
    """Something cannot be written where it shall be; the message says what to do."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where the results go, None = nowhere; the checkpoint at most every so many seconds."""

    checkpoint: Path | None
    every: float
    report: Path | None
    history: Path | None

    def check(self) -> None:
        """Refuse places that will not do, before hours are spent.

        Raises:
            PlaceError: One of them will not.
        """
        from alnair.history.report import NotReportError
        from alnair.history.report.folder import check

        for option, path in (("--checkpoint", self.checkpoint), ("--history", self.history)):
            if path is not None and path.is_dir():
                raise PlaceError(f"{option} {path}: this is a folder: name a file")
            # What is written takes the place of what is there, which must not be /dev/null.
            if path is not None and path.exists() and not path.is_file():
                raise PlaceError(f"{option} {path}: this is a device or a pipe: name a file")
            if path is not None and not path.parent.is_dir():
                raise PlaceError(f"{option} {path}: there is no folder {path.parent}: make it")
        if self.report is not None:
            try:
                check(self.report)
            except NotReportError as error:
                raise PlaceError(f"--report {error}") from error


def resumed(path: Path) -> Simulation:
    """Return the simulation of a checkpoint.

    Raises:
        CheckpointError: It cannot be resumed.
    """
    found = checkpoint.load(path)
    typer.echo(f"going on after {found.time / 86400:.2f} simulated days", err=True)
    return found


def carry_out(simulation: Simulation, places: Places, *, json: bool) -> None:
    """Simulate to the end, and write and show what came of it.

    Raises:
        typer.Exit: It was interrupted, or a result cannot be written.
    """
    began, before = time.perf_counter(), simulation.progress
    # What is there now stays: the garbage collector need not look at it again and again.
    gc.freeze()
    try:
        done = _advance(simulation, places)
        if not done:
            _say_interrupted(simulation, places)
            raise typer.Exit(INTERRUPTED)
        took = time.perf_counter() - began
        history = simulation.history()
        if places.history is not None:
            history_file.save(history, places.history)
        if places.report is not None:
            from alnair.history import report

            report.write({history.source or "simulation": history}, places.report)
    except OSError as error:
        typer.echo(f"alnair: {error}: free some space, or name another place", err=True)
        raise typer.Exit(UNWRITABLE) from None
    result = simulation_result.of(simulation, compute(history), took, before)
    simulation_result.show(result, json=json)
    if places.report is not None:
        typer.echo(f"report: {places.report / 'index.html'}", err=True)


def _advance(simulation: Simulation, places: Places) -> bool:
    """Simulate, with checkpoints; returns False after an interrupt."""
    due = time.perf_counter() + places.every
    with ClusterDisplay(simulation) as display, _interrupts() as interrupted:
        more = True
        while more and not interrupted:
            more = simulation.advance(_SLICE)
            display.show()
            now = time.perf_counter()
            if places.checkpoint is not None and (now >= due or not more):
                checkpoint.save(simulation, places.checkpoint)
                after = time.perf_counter()
                due = after + max(places.every, (after - now) / _SHARE)
        if more and places.checkpoint is not None:
            checkpoint.save(simulation, places.checkpoint)
    return not more


def _say_interrupted(simulation: Simulation, places: Places) -> None:
    when = f"interrupted after {simulation.time / 86400:.2f} simulated days"
    if places.checkpoint is None:
        typer.echo(f"{when}; nothing is kept: --checkpoint FILE would keep it", err=True)
    else:
        typer.echo(f"{when}; go on with --resume {places.checkpoint}", err=True)


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Have the first interrupt end the simulation in good order; the second ends it at once."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]

    def restore() -> None:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

    def interrupted(number: int, _frame: object) -> None:
        came.append(number)
        restore()

    for number in numbers:
        signal.signal(number, interrupted)
    try:
        yield came
    finally:
        restore()
