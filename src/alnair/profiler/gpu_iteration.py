"""How long an iteration takes, as GPUs show it that a pod has alone.

Whatever is sampled shows cycles that are shorter than a few samples as longer ones, or as none. So
a cycle counts only if it is long enough for the samples that show it; else nothing is said.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from alnair.profiler.cycles.cycle_length import two_lengths
from alnair.profiler.cycles.detection import detect_on
from alnair.profiler.even_grid import Grid, Refusal, Values, even

#: GPU → times in seconds, and percents.
Fine = Mapping[str, tuple[Values, Values]]
#: A cycle has so many samples at least.
LEAST_SAMPLES: Final = 5.0
#: So much is asked of a GPU, in percent, as of a training; see `workload_kind`.
_LEAST_USE: Final = 10.0
#: It rests for this part of its time at least: a cycle that is busy nearly all the time may be one
#: of checkpoints, or of evaluations, between steps too short to be seen.
_LEAST_REST: Final = 0.15
#: At rest it uses no more than this part of what it uses at work. Iterations about as long as a
#: sample beat with it, and look like long ones that never rest.
_RESTS: Final = 0.3
#: The two measures of its length differ by no more than this part.
_AGREE: Final = 0.02


class FineCycle(msgspec.Struct, frozen=True):
    """The iterations of a training: seconds of one, and the confidence, 0 to 1."""

    seconds: float
    confidence: float


def iteration_of_gpus(fine: Fine) -> FineCycle | Refusal:
    """Tell the iteration time, or why not.

    Args:
        fine: The driver's own samples.
    """
    best: FineCycle | None = None
    span = 0.0
    reason = "no GPU is the pod's alone"
    for times, values in fine.values():
        grid = even(times, values)
        if isinstance(grid, Refusal):
            reason = grid.reason
            continue
        span = max(span, float(times[-1] - times[0]))
        cycle = fine_cycle(grid)
        if isinstance(cycle, Refusal):
            reason = cycle.reason
        elif best is None or cycle.confidence > best.confidence:
            best = cycle
    return Refusal(reason) if best is None else best


def fine_cycle(grid: Grid) -> FineCycle | Refusal:
    """Look for a cycle that the samples are fine enough for.

    Its length is measured in two ways that have nothing in common. Where they differ, the cycles
    do, and what is typical of them is not known well enough.
    """
    known = grid.values[grid.seen]
    if float(known.mean()) < _LEAST_USE:
        return Refusal("it uses too little of the GPU for a training")
    cycle = detect_on(grid)
    if cycle.period_s is None:
        return Refusal(cycle.reason)
    if cycle.period_s < LEAST_SAMPLES * grid.step:
        return Refusal(f"{cycle.period_s:.3g} s are too short for a sample each {grid.step:.3g} s")
    low, high = np.percentile(known, (2, 98))
    works = known > (low + high) / 2
    if float((~works).mean()) < _LEAST_REST:
        return Refusal(f"each {cycle.period_s:.3g} s it may as well write a checkpoint")
    if np.median(known[~works]) > _RESTS * np.median(known[works]):
        return Refusal("it never rests for a whole sample: it may be faster than they are")
    by_edges, by_hills = two_lengths(grid, cycle.period_s / grid.step)
    if by_edges is None or abs(by_edges / by_hills - 1) > _AGREE:
        return Refusal(f"cycles of about {cycle.period_s:.3g} s differ too much")
    return FineCycle((by_edges + by_hills) / 2 * grid.step, cycle.confidence)
