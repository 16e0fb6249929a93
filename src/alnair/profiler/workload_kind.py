"""What kind of work a series of GPU use comes from: training, inference, batch, idle, or unknown.

A training repeats its iterations. Requests come at random, with rests in between. A batch job (ETL)
has a few long stages. What looks like none of them is unknown, and so is steady work: a training
whose iterations are shorter than two samples looks just like any other.
"""

from typing import Final, Literal

import msgspec
import numpy as np

from alnair.profiler.cycles.detection import Cyclicity, detect_on
from alnair.profiler.even_grid import Grid, Refusal, Values, even
from alnair.profiler.phases.change_points import change_points

Kind = Literal["training", "inference", "batch", "idle", "unknown"]
#: Percent of a GPU below which it rests.
RESTS: Final = 3.0
#: A training uses this much on average; less that repeats is a probe or a timer.
_LEAST_TRAINING: Final = 10.0
#: Requests leave the GPU at rest for this part of the time, and come so many times.
_LEAST_REST: Final = 0.2
_LEAST_BURSTS: Final = 5
#: A stage of a batch job is at least this part of the time.
_LEAST_STAGE: Final = 1 / 12
#: Means of so many parts of the time show it.
_MOST_MEANS: Final = 200
#: Steady work stays within this many percent of a GPU.
_STEADY: Final = 10.0


class WorkloadKind(msgspec.Struct, frozen=True):
    """What kind of work it is.

    Attributes:
        kind: Of the five.
        confidence: 0 to 1; of `unknown` 0.
        period_s: Of an iteration, where it is a training.
        reason: In words, with the figures.
    """

    kind: Kind
    confidence: float
    period_s: float | None
    reason: str


def workload_kind(times: Values, values: Values) -> WorkloadKind | Refusal:
    """Tell the kind of work from the use of a GPU.

    Args:
        times: Seconds of each sample.
        values: Percent of a GPU, 0 to 100.
    """
    grid = even(times, values)
    return grid if isinstance(grid, Refusal) else kind_on(grid, detect_on(grid))


def kind_on(grid: Grid, cycle: Cyclicity) -> WorkloadKind:
    """As `workload_kind`, of a series whose cycle has been looked for already."""
    known = grid.values[grid.seen]
    mean, p95 = float(known.mean()), float(np.percentile(known, 95))
    if p95 < RESTS:
        return WorkloadKind(
            "idle", 1 - p95 / RESTS / 2, None, f"95 % of samples are below {p95:.1f} %"
        )
    if cycle.period_s is not None:
        if mean >= _LEAST_TRAINING:
            return WorkloadKind("training", cycle.confidence, cycle.period_s, cycle.reason)
        reason = f"it repeats, but uses {mean:.1f} % only, as a probe or a timer does"
        return WorkloadKind("unknown", 0.0, None, reason)
    return _requests(known) or _stages(known) or _unclear(known)


def _requests(known: Values) -> WorkloadKind | None:
    works = known >= RESTS
    rest = 1 - float(works.mean())
    starts = np.flatnonzero(np.diff(works.astype(np.int8)) == 1)
    if rest < _LEAST_REST or len(starts) < _LEAST_BURSTS:
        return None
    gaps = np.diff(starts)
    spread = float(gaps.std() / gaps.mean())
    reason = (
        f"{len(starts)} bursts, at rest for {rest:.0%} of the time, at intervals that spread by"
        f" {spread:.0%} of their mean"
    )
    return WorkloadKind("inference", min(0.95, 0.4 + spread / 2), None, reason)


def _stages(known: Values) -> WorkloadKind | None:
    # Stages are long: means of a few samples show them as well, and in less time.
    size = max(1, len(known) // _MOST_MEANS)
    means = known[: len(known) // size * size].reshape(-1, size).mean(axis=1)
    cuts = change_points(means[:, None], least=max(4, len(means) // 50))
    lengths = np.diff([0, *cuts, len(means)])
    if not cuts or float(np.median(lengths)) < _LEAST_STAGE * len(means):
        return None
    levels = [float(part.mean()) for part in np.split(means, cuts)]
    if max(levels) - min(levels) < _STEADY:
        return None
    reason = f"{len(levels)} long stages, at {min(levels):.0f} to {max(levels):.0f} %"
    return WorkloadKind("batch", 0.6, None, reason)


def _unclear(known: Values) -> WorkloadKind:
    low, high = np.percentile(known, (5, 95))
    if high - low < _STEADY:
        reason = (
            f"it is steady at {known.mean():.0f} %: iterations shorter than two samples would not"
            " show, and other work looks alike"
        )
    else:
        reason = "it neither repeats nor has bursts or stages"
    return WorkloadKind("unknown", 0.0, None, reason)
