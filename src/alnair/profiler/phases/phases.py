"""The phases of a job: start, data loading, training, evaluation, checkpoint, idle, pause.

Training is what most of the busy time looks like; the others are told by what they use instead.
"""

import itertools
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model import usage
from alnair.profiler.even_grid import Refusal
from alnair.profiler.phases.change_points import change_points
from alnair.profiler.phases.moments import Moments, moments

Values = NDArray[np.float64]
Name = Literal["start", "data loading", "training", "evaluation", "checkpoint", "pause", "idle"]

#: Below this part of its level in training, an activity rests.
_RESTS: Final = 0.15
#: Reading or writing at this part of its highest level is what a phase is for.
_MUCH: Final = 0.5
#: Two levels closer than this, as a part of the higher one, are one.
_ALIKE: Final = 0.15
#: A change takes so many moments at most.
_TRANSITION: Final = 2
#: Used at all: percent of a GPU, cores, MiB/s; of a metric that is not known here, see `_floor`.
_USED: Final = {
    usage.GPU_UTIL: 3.0,
    usage.CPU_CORES: 0.05,
    usage.IO_READ_MIB_S: 1.0,
    usage.IO_WRITE_MIB_S: 1.0,
    usage.NET_RX_MIB_S: 1.0,
    usage.NET_TX_MIB_S: 1.0,
}
_READS: Final = (usage.IO_READ_MIB_S, usage.NET_RX_MIB_S)
_WRITES: Final = (usage.IO_WRITE_MIB_S, usage.NET_TX_MIB_S)
#: Sizes tell where phases change, but nothing of what is done.
_SIZES: Final = (usage.GPU_MEMORY_MIB, usage.MEMORY_MIB)


class Phase(msgspec.Struct, frozen=True):
    """A part of a job's time.

    Attributes:
        name: What it does; a pause is a rest between busy phases whose cause nothing shows.
        start_s, end_s: Seconds, on the clock of the samples.
        means: Metric → its mean in it.
        reason: Why it is called so.
    """

    name: Name
    start_s: float
    end_s: float
    means: dict[str, float]
    reason: str


class Phases(msgspec.Struct, frozen=True):
    """The phases of a time, one after the other without gaps.

    Attributes:
        phases: In their order; two neighbours differ in name.
        resolution_s: How exactly their ends are known.
    """

    phases: tuple[Phase, ...]
    resolution_s: float


def phases(
    metrics: Mapping[str, tuple[Values, Values]],
    period_s: float | None = None,
    least_s: float = 0.0,
) -> Phases | Refusal:
    """Tell the phases of a job from one or several of its metrics.

    Args:
        metrics: Name (as in `alnair.model.usage`) → times in seconds of one clock, and values. A
            name that is not known counts as an activity, as percents of a GPU do.
        period_s: Seconds of an iteration, where that is known; 0: there is none. None: it is
            looked for, which takes most of the time.
        least_s: How long a phase is at least, seconds: the time that this takes goes down with it.

    Returns:
        The phases, or why there is nothing to tell.
    """
    found = moments(metrics, period_s, least_s)
    if isinstance(found, Refusal):
        return found
    features = np.column_stack([*found.means.values(), *found.deviations.values()])
    count = len(features)
    edges = [0, *change_points(features, least=1), count]
    main = _main(found)
    if main is not None:
        edges = _without_transitions(edges, found.means[main])
    parts = [slice(low, high) for low, high in itertools.pairwise(edges)]
    named = _named(found, parts)
    joined: list[Phase] = []
    for part, (name, reason) in zip(parts, named, strict=True):
        low = part.start
        if joined and joined[-1].name == name:
            low = round((joined.pop().start_s - found.start) / found.length)
        joined.append(_phase(found, slice(low, part.stop), name, reason))
    return Phases(tuple(joined), found.length)


def _without_transitions(edges: list[int], values: Values) -> list[int]:
    """Give a short part whose level is between those around it to the one that is nearer.

    It is the moment in which the one ended and the other began.

    Args:
        edges: Where parts begin, and the end.
        values: Of the main metric, by moment.
    """
    kept, at = list(edges), 1
    while at + 2 < len(kept):
        low, high = kept[at], kept[at + 1]
        before, level, after = (
            float(values[begin:end].mean())
            for begin, end in itertools.pairwise(kept[at - 1 : at + 3])
        )
        if high - low > _TRANSITION or not min(before, after) <= level <= max(before, after):
            at += 1
        else:
            kept.remove(low if abs(level - before) <= abs(level - after) else high)
    return kept


def _phase(found: Moments, part: slice, name: Name, reason: str) -> Phase:
    return Phase(
        name=name,
        start_s=found.start + part.start * found.length,
        end_s=found.start + part.stop * found.length,
        means={metric: float(values[part].mean()) for metric, values in found.means.items()},
        reason=reason,
    )


def _named(found: Moments, parts: list[slice]) -> list[tuple[Name, str]]:
    """A name for each part, and why."""
    levels = [
        {metric: float(values[part].mean()) for metric, values in found.means.items()}
        for part in parts
    ]
    main = _main(found)
    if main is None or not any(_uses(found, level, main) for level in levels):
        return [_resting(found, level, None) for level in levels]
    training = _training(found, parts, levels, main)
    trains = [i for i, level in enumerate(levels) if _is_alike(level[main], training)]
    first, last = (trains[0], trains[-1]) if trains else (len(parts), -1)
    named: list[tuple[Name, str]] = []
    for i, level in enumerate(levels):
        if i in trains:
            named.append(("training", f"{main} is {level[main]:.3g}, as most of the busy time"))
        elif level[main] >= _RESTS * training:
            named.append(("evaluation", f"{main} is {level[main]:.3g}, in training {training:.3g}"))
        elif i < first:
            named.append(_resting(found, level, "start"))
        else:
            named.append(_resting(found, level, "pause" if i < last else None))
    return named


def _main(found: Moments) -> str | None:
    """The metric that says whether the job works: the GPU's use, else the CPU's, else the first."""
    others = (name for name in found.means if name not in (*_SIZES, *_READS, *_WRITES))
    return next(
        (name for name in (usage.GPU_UTIL, usage.CPU_CORES, *others) if name in found.means), None
    )


def _training(
    found: Moments, parts: list[slice], levels: list[dict[str, float]], main: str
) -> float:
    """The level of the main metric that the most busy time has."""
    busy = [i for i, level in enumerate(levels) if _uses(found, level, main)]

    def time_alike(i: int) -> int:
        alike = (j for j in busy if _is_alike(levels[j][main], levels[i][main]))
        return sum(parts[j].stop - parts[j].start for j in alike)

    return levels[max(busy, key=time_alike)][main]


def _resting(found: Moments, level: dict[str, float], otherwise: Name | None) -> tuple[Name, str]:
    """What a part is in which the main metric rests."""
    for metric in _WRITES:
        if otherwise == "pause" and _is_much(found, level, metric):
            return "checkpoint", f"it rests and {metric} is {level[metric]:.3g}"
    for metric in _READS:
        if _is_much(found, level, metric):
            return "data loading", f"it rests and {metric} is {level[metric]:.3g}"
    main = _main(found)
    cpu = usage.CPU_CORES
    if main != cpu and cpu in level and _uses(found, level, cpu):
        if otherwise == "start":
            return "start", f"{main} rests and {cpu} is {level[cpu]:.3g}"
        return "data loading", f"{main} rests and {cpu} is {level[cpu]:.3g}"
    if otherwise is not None:
        return otherwise, f"{main} rests, {'before' if otherwise == 'start' else 'in'} training"
    return "idle", "nothing is used"


def _uses(found: Moments, level: dict[str, float], metric: str) -> bool:
    return level[metric] > _floor(found, metric)


def _is_much(found: Moments, level: dict[str, float], metric: str) -> bool:
    if metric not in level:
        return False
    most = float(found.means[metric].max())
    return level[metric] > max(_USED[metric], _MUCH * most)


def _floor(found: Moments, metric: str) -> float:
    return _USED.get(metric, 0.05 * float(found.means[metric].max()))


def _is_alike(one: float, other: float) -> bool:
    return abs(one - other) <= _ALIKE * max(abs(one), abs(other))
