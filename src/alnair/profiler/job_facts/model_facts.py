"""A job's model, from all that says something of it: who says it more surely goes first."""

from typing import Final

from alnair.model.job_facts import Figure, ModelFacts
from alnair.profiler.logs.model_size import ModelSize

_LOG: Final = "log"
#: Bytes of a parameter that most models are kept in at least, as bfloat16 or float16.
_BYTES: Final = 2


def model_facts(
    declared: ModelFacts, log: ModelSize, held_mib: float | None = None
) -> ModelFacts | None:
    """Return what is known, None where nothing is.

    The user's word goes first, then the log's, then estimates.

    Args:
        declared: What the pod's specification says.
        log: What its log says.
        held_mib: GPU memory that the weights cannot exceed.
    """
    parameters = _parameters(declared.parameters, log)
    found = ModelFacts(declared.name, parameters, _weights(declared, log, parameters, held_mib))
    return found if found != ModelFacts() else None


def _parameters(said: Figure | None, log: ModelSize) -> Figure | None:
    if said is not None and not _is_estimate(said):
        return said
    if log.parameters:
        return Figure(log.parameters, _LOG)
    if log.trained:
        return Figure(log.trained, "log: those that are trained")
    return said


def _weights(
    declared: ModelFacts, log: ModelSize, parameters: Figure | None, held_mib: float | None
) -> Figure | None:
    if declared.weights_mib is not None:
        return _rounded(declared.weights_mib)
    if log.weights_mib:
        return _rounded(Figure(log.weights_mib, _LOG))
    if parameters is not None:
        least = parameters.value * _BYTES / (1 << 20)
        if held_mib is None or least <= held_mib:
            source = f"estimated: at least, {_BYTES} bytes for each parameter"
            return _rounded(Figure(least, source)) if least >= 1e-3 else None
    if held_mib is None:
        return None
    return _rounded(Figure(held_mib, "estimated: at most, the least GPU memory held for 20 s"))


def _is_estimate(figure: Figure) -> bool:
    return figure.source.startswith("estimated")


def _rounded(figure: Figure) -> Figure:
    """Return three digits, so that what barely moves is not written anew each time."""
    return Figure(float(f"{figure.value:.3g}"), figure.source)
