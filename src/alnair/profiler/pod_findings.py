"""What a pod does, told from its last ten minutes: kind of work, iterations, phase, bottleneck."""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model import usage
from alnair.model.usage import Digest
from alnair.profiler.bottleneck import bottleneck
from alnair.profiler.even_grid import Refusal
from alnair.profiler.gpu_iteration import Fine, iteration_of_gpus
from alnair.profiler.phases.phases import phases
from alnair.profiler.workload_kind import workload_kind

Values = NDArray[np.float64]
_UNKNOWN: Final = "unknown"
_TRAINING: Final = "training"
#: Seconds over which a bottleneck is looked for: it changes with the phase.
_LATELY: Final = 120.0
#: Seconds that a phase has at least; it is looked for twice a minute.
_LEAST_PHASE: Final = 3.0
#: What tells phases apart.
_SHOWS_PHASES: Final = (
    usage.GPU_UTIL,
    usage.CPU_CORES,
    usage.IO_READ_MIB_S,
    usage.IO_WRITE_MIB_S,
    usage.NET_RX_MIB_S,
    usage.NET_TX_MIB_S,
)


_NONE: Final[Fine] = {}


class PodFindings(msgspec.Struct, frozen=True):
    """What is known; None is not known.

    Attributes:
        kind: Of `alnair.profiler.workload_kind`.
        period_s: Seconds of an iteration, by the driver's samples of GPUs that it has alone.
        busy: Part of the time lately in which it used its GPUs, 0 to 1.
        phase: What it does now.
        bottleneck: What holds it up, lately.
    """

    kind: str | None = None
    period_s: float | None = None
    phase: str | None = None
    bottleneck: str | None = None
    busy: float | None = None


def pod_findings(times: Values, metrics: Mapping[str, Values], fine: Fine = _NONE) -> PodFindings:
    """Tell what a pod does.

    Args:
        times: Seconds of each sample, not falling.
        metrics: Name (of `alnair.model.usage`) → as many values; NaN where it was not measured.
        fine: GPU that it has alone → the driver's own samples of it: times, and percents.
    """
    util = metrics.get(usage.GPU_UTIL)
    if util is None:
        return PodFindings()
    kind = workload_kind(times, util)
    if isinstance(kind, Refusal):  # too short a time for anything
        return PodFindings(bottleneck=_bottleneck(times, metrics))
    # Samples of a second show no iteration for certain: what they repeat may be checkpoints, or
    # what they make of a shorter time.
    told_time = iteration_of_gpus(fine)
    period = None if isinstance(told_time, Refusal) else told_time.seconds
    name = _TRAINING if period is not None else kind.kind
    shown = {name: (times, metrics[name]) for name in _SHOWS_PHASES if name in metrics}
    told = phases(shown, period or 0.0, _LEAST_PHASE)
    return PodFindings(
        kind=None if name == _UNKNOWN else name,
        period_s=None if period is None else float(period),
        phase=None if isinstance(told, Refusal) else told.phases[-1].name,
        bottleneck=_bottleneck(times, metrics),
        busy=_busy(times, util),
    )


def _busy(times: Values, util: Values) -> float | None:
    lately = util[times >= times[-1] - _LATELY]
    seen = lately[~np.isnan(lately)]
    return float(seen.mean()) / 100 if len(seen) else None


def _bottleneck(times: Values, metrics: Mapping[str, Values]) -> str | None:
    lately = times >= times[-1] - _LATELY if len(times) else np.zeros(0, bool)
    digests = {
        name: digest
        for name, values in metrics.items()
        if (digest := _digest(times[lately], values[lately])) is not None
    }
    found = bottleneck(digests).bound
    return None if found == _UNKNOWN else found


def _digest(times: Values, values: Values) -> Digest | None:
    seen = values[~np.isnan(values)]
    if not len(seen):
        return None
    seconds = float(times[-1] - times[0]) * len(seen) / len(values)
    return Digest(float(seen.mean()), float(seen.max()), float(np.percentile(seen, 95)), seconds)
