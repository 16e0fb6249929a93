"""The pod annotation `workload`, from what is known of a pod."""

import math

from alnair.model.api_types import Workload
from alnair.profiler.logs.log_reader import LogFindings
from alnair.profiler.stragglers import Straggler

_TRAINING = "training"


def workload(
    t: str,
    *,
    type: str | None = None,  # noqa: A002 - what the annotation calls it
    period_s: float | None = None,
    phase: str | None = None,
    bottleneck: str | None = None,
    log: LogFindings | None = None,
    straggler: Straggler | None = None,
) -> Workload | None:
    """Return the annotation's document, without what is not known; None where nothing is.

    Args:
        t: When this is true, RFC 3339.
        type: What kind of work it is; a log that counts steps makes it a training.
        period_s: Seconds of one iteration, from its use; the log's own steps tell it better, for
            iterations shorter than two samples seem to be longer.
        phase: What it does now.
        bottleneck: What holds it up.
        log: What its log says.
        straggler: How slow it is beside the other ranks, while it is.
    """
    said = log or LogFindings()
    if type is None and said.readings:
        type = _TRAINING  # noqa: A001
    if phase == _TRAINING and type != _TRAINING:
        phase = None  # it is busy, but with what is not known
    if said.rate:
        period_s = 1 / said.rate
    found = Workload(
        1,
        t,
        type=type,
        framework=said.framework,
        period_s=_rounded(period_s),
        phase=phase,
        step=said.step if said.step is not None and said.step < 2**31 else None,
        epoch=_rounded(said.epoch),
        progress=_rounded(said.progress),
        eta_s=_rounded(said.eta_s),
        eta_low_s=_rounded(said.eta_low_s),
        eta_high_s=_rounded(said.eta_high_s),
        bottleneck=bottleneck,
        straggler=_rounded(straggler.slowdown) if straggler else None,
    )
    return found if found != Workload(1, t) else None


def _rounded(value: float | None) -> float | None:
    """Return three digits, so that a figure that barely moves is not written anew each time."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.3g}")
