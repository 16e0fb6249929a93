"""What is said of a series of samples, as text."""

from collections.abc import Iterator

from alnair.model.plurals import counted
from alnair.profiler.forecast import Forecast
from alnair.profiler.phases.phases import Phase
from alnair.profiler.series_analysis import VALUE, SeriesAnalysis


def lines(found: SeriesAnalysis) -> Iterator[str]:
    """Yield the lines for a person."""
    yield (
        f"{counted(found.samples, 'sample')} in {found.seconds:.6g} s, one every "
        f"{found.step_s:.3g} s"
    )
    yield ""
    if found.period_s is None:
        yield f"cyclic: no (confidence {found.confidence:.2f}): {found.reason}"
    else:
        yield f"cyclic: yes, every {found.period_s:.4g} s (confidence {found.confidence:.2f})"
        yield f"  {found.reason}"
    if found.phases:
        yield ""
        yield f"phases, to {found.resolution_s:.3g} s:"
        yield from map(_phase, found.phases)
    if found.forecast is not None:
        yield ""
        yield from _forecast(found.forecast)
    for note in found.notes:
        yield ""
        yield f"note: {note}"


def _phase(phase: Phase) -> str:
    span = f"{phase.start_s:>12.6g} to {phase.end_s:<12.6g}"
    # A mean of exactly nothing may have come out as -0.
    return f"{span} {phase.name:<13} mean {phase.means[VALUE] + 0.0:.4g}"


def _forecast(ahead: Forecast) -> Iterator[str]:
    held = f"holds for {ahead.coverage:.0%} of such times"
    yield f"forecast for the next {ahead.horizon_s:.0f} s:"
    yield f"  at most {ahead.most:.4g} ({held})"
    yield f"  mean {ahead.mean:.4g}, from {ahead.mean_low:.4g} to {ahead.mean_high:.4g} ({held})"
