"""Carries out `alnair simulate cluster`: progress, interrupts, and the result."""

import gc
import time
from typing import Final

import typer

from alnair.cli.failures import INTERRUPTED, fail, words
from alnair.cli.interrupts import counted
from alnair.cli.json_output import write_json
from alnair.cli.process_memory import peak_rss_mb
from alnair.cli.progress import CountDisplay
from alnair.cli.text import simulation_result
from alnair.cli.text.console import console
from alnair.cli.text.simulation_progress import said
from alnair.history.metrics import compute
from alnair.sim.outputs import Outputs
from alnair.sim.result import of
from alnair.sim.running import run
from alnair.sim.simulation import Simulation

_DAY: Final = 86400.0


def carry_out(simulation: Simulation, outputs: Outputs, *, json: bool) -> None:
    """Simulate to the end, with progress; write and show what came of it.

    Raises:
        typer.Exit: It was interrupted, or a result cannot be written.
    """
    began, before = time.perf_counter(), simulation.progress
    # What is there now stays: the garbage collector need not look at it again and again.
    gc.freeze()
    try:
        if not _run(simulation, outputs):
            _say_interrupted(simulation, outputs)
            raise typer.Exit(INTERRUPTED)
        took = time.perf_counter() - began
        history = simulation.history()
        outputs.write(history)
    except OSError as error:
        fail(f"{words(error)}: free some space, or name another place")
    result = of(simulation, compute(history), took=took, before=before, peak_rss_mb=peak_rss_mb())
    simulation_result.show(result, console(json=json))
    if json:
        write_json(result)
    if outputs.report is not None:
        typer.echo(f"report: {outputs.report / 'index.html'}", err=True)


def _run(simulation: Simulation, outputs: Outputs) -> bool:
    """Simulate with progress on stderr; returns False after an interrupt."""
    begun, start = time.perf_counter(), simulation.time
    with (
        CountDisplay("simulating", "jobs finished", pause=10.0) as display,
        counted() as is_interrupted,
    ):

        def show() -> None:
            if display.is_due:
                progress = simulation.progress
                text = said(simulation, start, time.perf_counter() - begun)
                display.show(progress.finished, progress.jobs, text)

        return run(
            simulation,
            outputs,
            timer=time.perf_counter,
            show=show,
            is_interrupted=is_interrupted,
        )


def _say_interrupted(simulation: Simulation, outputs: Outputs) -> None:
    when = f"interrupted after {simulation.time / _DAY:.2f} simulated days"
    if outputs.checkpoint is None:
        typer.echo(f"{when}; nothing is kept: --checkpoint FILE would keep it", err=True)
    else:
        typer.echo(f"{when}; go on with --resume {outputs.checkpoint}", err=True)
