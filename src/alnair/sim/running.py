"""Carries a simulation to its end, with checkpoints on the way."""

from collections.abc import Callable
from typing import Final

from alnair.sim import checkpoint
from alnair.sim.outputs import Outputs
from alnair.sim.simulation import Simulation

#: Moments between two looks at the clock on the wall: a quarter of a second, or less.
_SLICE: Final = 100
#: Checkpoints take at most about this part of the time.
_SHARE: Final = 0.05


def run(
    simulation: Simulation,
    outputs: Outputs,
    *,
    timer: Callable[[], float],
    show: Callable[[], None],
    is_interrupted: Callable[[], bool],
) -> bool:
    """Simulate to the end, or until interrupted.

    Args:
        simulation: What is simulated.
        outputs: Where the checkpoint goes, and how often; the last one is of the end.
        timer: Seconds of real time, from anywhere.
        show: Called a few times a second.
        is_interrupted: Whether it shall end, asked as often.

    Returns:
        Whether it came to its end.

    Raises:
        OSError: A checkpoint cannot be written.
    """
    due = timer() + outputs.every
    more = True
    while more and not is_interrupted():
        more = simulation.advance(_SLICE)
        show()
        now = timer()
        if outputs.checkpoint is not None and (now >= due or not more):
            checkpoint.save(simulation, outputs.checkpoint)
            after = timer()
            due = after + max(outputs.every, (after - now) / _SHARE)
    if more and outputs.checkpoint is not None:
        checkpoint.save(simulation, outputs.checkpoint)
    return not more
