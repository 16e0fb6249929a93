"""How a container's CUDA calls are distributed, and what that says of the kind of work.

The counts are the container's own word: it can make them any number. They say nothing of what it is
charged or allowed.
"""

from collections.abc import Mapping
from typing import Final

from alnair.model.job_facts import CudaCalls

#: Classes of calls, by the names that people see.
LAUNCH: Final = "launch"
GRAPH: Final = "graph"
H2D: Final = "h2d"
D2H: Final = "d2h"
#: Parts of all calls below this are not told.
_LEAST: Final = 0.001
#: Copies to the GPU below which nothing is said of the kind of work.
_FEW: Final = 20
#: A training step copies a batch in and reads a loss now and then; each request is answered.
_ANSWERED: Final = 0.8
_RARELY: Final = 0.5
#: Kernels for a batch: forward, backward, optimizer; a graph stands for all of them.
_STEP: Final = 100.0


def distribution(
    before: Mapping[str, int], now: Mapping[str, int], seconds: float, source: str
) -> CudaCalls | None:
    """Return what was called between two looks; None where nothing was, or time stood still.

    Args:
        before: Class → calls so far, at the look before.
        now: The same.
        seconds: Between them.
        source: Who counts.
    """
    grown = growth(before, now)
    total = sum(grown.values())
    if not total or seconds <= 0:
        return None
    shares = {name: round(count / total, 3) for name, count in grown.items()}
    return CudaCalls(
        float(f"{total / seconds:.3g}"),
        {name: share for name, share in sorted(shares.items()) if share >= _LEAST},
        source,
    )


def growth(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Return class → calls between two looks; a count that fell has grown by nothing."""
    return {name: max(0, count - before.get(name, 0)) for name, count in now.items()}


def kind_by_calls(grown: Mapping[str, int]) -> str | None:
    """Return `training` or `inference` where the copies tell it; else None.

    What is asked must be answered: for each batch that goes to the GPU something comes back, after
    few kernels. A training reads its loss back now and then, and does far more with a batch.
    """
    asked, answered = grown.get(H2D, 0), grown.get(D2H, 0)
    kernels, graphs = grown.get(LAUNCH, 0), grown.get(GRAPH, 0)
    if asked < _FEW or not (kernels or graphs):
        return None
    if answered >= _ANSWERED * asked:
        # With a loss that is read at every step, a training looks the same.
        return "inference" if kernels < _STEP * answered else None
    if answered < _RARELY * asked and kernels + graphs * _STEP >= _STEP * asked / 2:
        return "training"
    return None
