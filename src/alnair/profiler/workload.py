"""The pod annotation `workload`, from what is known of a pod."""

import math

from alnair.model.api_types import UtilizationAhead, Workload
from alnair.model.job_facts import CudaCalls, InputFacts, ModelFacts
from alnair.profiler.logs.log_reader import LogFindings
from alnair.profiler.memory_course import Filling
from alnair.profiler.pod_findings import PodFindings

_TRAINING = "training"
_LOG, _GPU = "log", "gpu"
#: Neighbours that are named.
_NAMED = 8


def workload(
    t: str,
    found: PodFindings,
    *,
    log: LogFindings | None = None,
    idle_since: str | None = None,
    filling: Filling | None = None,
    ahead: UtilizationAhead | None = None,
    neighbours: frozenset[str] = frozenset(),
    slowdown: float | None = None,
    type_by_calls: str | None = None,
    model: ModelFacts | None = None,
    input: InputFacts | None = None,  # noqa: A002 - what the annotation calls it
    cuda: CudaCalls | None = None,
) -> Workload | None:
    """Return the annotation's document, without what is not known; None where nothing is.

    Args:
        t: When this is true, RFC 3339.
        found: What its use tells: the log's own steps tell the time of one better, and a log that
            counts steps makes it a training.
        log: What its log says.
        idle_since: Since when it has not used the GPUs that it holds, if that is long.
        filling: When its GPU memory will be full.
        ahead: What it will use of its GPUs.
        neighbours: Pods on its GPUs.
        slowdown: Its steps' time beside them over that alone.
        type_by_calls: What its calls of CUDA say it is, where nothing else says it.
        model: What it trains or serves.
        input: What it reads.
        cuda: Which calls of CUDA it makes.
    """
    said = log or LogFindings()
    kind, phase = found.kind, found.phase
    if kind is None and said.readings:
        kind = _TRAINING
    by_calls = kind is None and type_by_calls is not None
    if by_calls:
        kind = type_by_calls
    if phase == _TRAINING and kind != _TRAINING:
        phase = None  # it is busy, but with what is not known
    period = 1 / said.rate if said.rate else found.period_s
    source = _LOG if said.rate else _GPU
    busy = None if period is None or found.busy is None else period * found.busy
    made = Workload(
        1,
        t,
        type=kind,
        framework=said.framework,
        period_s=_rounded(period),
        phase=phase,
        step=said.step if said.step is not None and said.step < 2**31 else None,
        epoch=_rounded(said.epoch),
        progress=_rounded(said.progress),
        eta_s=_rounded(said.eta_s),
        eta_low_s=_rounded(said.eta_low_s),
        eta_high_s=_rounded(said.eta_high_s),
        bottleneck=found.bottleneck,
        period_from=source if _rounded(period) is not None else None,
        busy_s=_rounded(busy),
        idle_since=idle_since,
        memory_full_s=_rounded(filling.seconds) if filling else None,
        memory_full_coverage=_rounded(filling.coverage) if filling else None,
        gpu_util_ahead=ahead,
        neighbours=tuple(sorted(neighbours)[:_NAMED]) or None,
        slowdown=_rounded(slowdown) if neighbours else None,
        slowdown_from=_LOG if neighbours and slowdown is not None else None,
        type_source="CUDA calls" if by_calls else None,
        model=model,
        input=input,
        cuda=cuda,
    )
    # That nobody counts the calls is worth telling only beside something that is known.
    nothing = Workload(1, t), Workload(1, t, cuda=cuda if cuda and cuda.unknown else None)
    return None if made in nothing else made


def _rounded(value: float | None) -> float | None:
    """Return three digits, so that a figure that barely moves is not written anew each time."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.3g}")
