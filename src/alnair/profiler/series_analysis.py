"""All that can be said of one series: is it cyclic, which phases has it, what comes next."""

import msgspec

from alnair.profiler.cycles.detection import detect_on
from alnair.profiler.even_grid import Refusal, Values, even
from alnair.profiler.forecast import HOUR, Forecast, forecast
from alnair.profiler.phases.phases import Phase, phases

#: The name of the one metric, which may be anything.
VALUE = "value"


class SeriesAnalysis(msgspec.Struct, frozen=True):
    """What is said of a series.

    Attributes:
        v: 1.
        samples: How many were seen.
        seconds: From the first to the last.
        step_s: Median time between two.
        cyclic: Does it repeat?
        period_s: After how many seconds; None if not cyclic.
        confidence: 0 to 1, of `cyclic`.
        reason: For `cyclic`, in words.
        phases: Its parts; empty if there is nothing to tell.
        resolution_s: How exactly their ends are known.
        forecast: None if the series is too short for one.
        notes: What could not be told, and why.
    """

    samples: int
    seconds: float
    step_s: float
    cyclic: bool
    period_s: float | None
    confidence: float
    reason: str
    phases: tuple[Phase, ...]
    resolution_s: float | None
    forecast: Forecast | None
    notes: tuple[str, ...]
    v: int = 1


def analyze(
    times: Values, values: Values, *, horizon_s: float = HOUR, coverage: float = 0.9
) -> SeriesAnalysis | Refusal:
    """Say all that can be said of a series.

    Args:
        times: Seconds of each sample, not falling.
        values: What was sampled.
        horizon_s: How far to look ahead.
        coverage: In what part of such times a bound shall hold.

    Returns:
        What was found; or why nothing can be.
    """
    grid = even(times, values)
    if isinstance(grid, Refusal):
        return grid
    cycle = detect_on(grid)
    notes = []
    told = phases({VALUE: (times, values)})
    if isinstance(told, Refusal):
        notes.append(f"phases: {told.reason}")
    ahead = forecast(times, values, horizon_s=horizon_s, coverage=coverage)
    if isinstance(ahead, Refusal):
        notes.append(f"forecast: {ahead.reason}")
    elif ahead.coverage < coverage:
        notes.append(
            f"forecast: its bounds hold for {ahead.coverage:.0%} of times, not {coverage:.0%}: the"
            " series is too short to show more"
        )
    return SeriesAnalysis(
        samples=int(grid.seen.sum()),
        seconds=float(times[-1] - times[0]),
        step_s=grid.step,
        cyclic=cycle.cyclic,
        period_s=cycle.period_s,
        confidence=cycle.confidence,
        reason=cycle.reason,
        phases=() if isinstance(told, Refusal) else told.phases,
        resolution_s=None if isinstance(told, Refusal) else told.resolution_s,
        forecast=None if isinstance(ahead, Refusal) else ahead,
        notes=tuple(notes),
    )
