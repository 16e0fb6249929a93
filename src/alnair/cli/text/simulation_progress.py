"""How far a simulation is, in words."""

from typing import Final

from alnair.model.plurals import counted
from alnair.sim.simulation import Simulation

_DAY: Final = 86400.0


def said(simulation: Simulation, begin: float, took: float) -> str:
    """Return the day, the speed, and what is there.

    Args:
        simulation: What is shown.
        begin: Its time when the process began, seconds.
        took: Seconds of real time since then.
    """
    progress = simulation.progress
    return (
        f"day {simulation.time / _DAY:.2f}, "
        f"{(simulation.time - begin) / took:,.0f} times real time, "
        f"{counted(progress.submitted - progress.finished, 'job')} there, "
        f"{counted(simulation.pods_waiting(), 'pod')} waiting"
    )
