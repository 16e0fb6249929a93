"""How many GPUs, or what part of one, the pods of a job would have done with.

What was measured is the past: the advice leaves room above the peak, and is none where the room is
not worth a change.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from alnair.model import names, usage
from alnair.model.usage import PodUsage

#: Above the largest amount of GPU memory that was seen; the allocators of frameworks grow in steps.
_MEMORY_ROOM: Final = 1.2
#: Above the 95th percentile of utilisation.
_COMPUTE_ROOM: Final = 1.25
_MEMORY_STEP: Final = 256
_COMPUTE_STEP: Final = 5
#: A part of a GPU that is larger than this saves too little to be worth a change.
_WORTH: Final = 0.75
#: Seconds below which a measurement says little.
_LEAST: Final = 60.0


class Advice(msgspec.Struct, frozen=True):
    """What a container would have done with.

    Attributes:
        container: Which one.
        limits: Of resources, to be written in place of its limits for GPUs; None takes one away.
        saves: Part of the GPUs that becomes free, 0 to 1.
        why: In words, with the figures.
    """

    container: str
    limits: dict[str, str | None]
    saves: float
    why: str


def advice(usages: Sequence[PodUsage]) -> Advice | None:
    """Return advice for pods that are alike; None if what they have is right, or little is known.

    Args:
        usages: Of some of the pods of a job; those that used most decide.
    """
    seen = [one for one in usages if _util(one) is not None and one.gpus]
    if not seen or len({len(one.gpus) for one in seen}) > 1:
        return None
    if any(not gpu.whole for one in seen for gpu in one.gpus):
        return None
    with_gpu = {
        name
        for one in seen
        for name, metrics in one.containers.items()
        if usage.GPU_UTIL in metrics
    }
    if len(with_gpu) != 1:
        return None  # of several, nobody can say which shall have less
    (container,) = with_gpu
    count = len(seen[0].gpus)
    p95 = max(digest.p95 for one in seen if (digest := _util(one)) is not None)
    return _slice(seen, container, p95) if count == 1 else _fewer(container, count, p95)


def _util(one: PodUsage) -> usage.Digest | None:
    found = one.metrics.get(usage.GPU_UTIL)
    return found if found is not None and found.seconds >= _LEAST else None


def _fewer(container: str, count: int, p95: float) -> Advice | None:
    # Utilisation is the mean over its GPUs: together they did the work of so many.
    need = max(math.ceil(count * p95 * _COMPUTE_ROOM / 100.0), 1)
    if need > count * _WORTH:
        return None
    return Advice(
        container,
        {names.GPU: str(need)},
        1.0 - need / count,
        f"its {count} GPUs were {p95:.0f} % busy (95th percentile): the work of {need}",
    )


def _slice(seen: Sequence[PodUsage], container: str, p95: float) -> Advice | None:
    peaks = [one.metrics.get(usage.GPU_MEMORY_MIB) for one in seen]
    have = min(one.gpus[0].memory_mib for one in seen)
    if not have or any(peak is None for peak in peaks):
        return None
    peak = max(one.max for one in peaks if one is not None)
    memory = max(_up(peak * _MEMORY_ROOM, _MEMORY_STEP), _MEMORY_STEP)
    compute = max(_up(p95 * _COMPUTE_ROOM, _COMPUTE_STEP), _COMPUTE_STEP)
    part = max(memory / have, compute / 100.0)
    if part > _WORTH:
        return None
    return Advice(
        container,
        {
            names.GPU: None,
            names.VGPU_MEMORY: str(memory),
            names.VGPU_COMPUTE: str(compute),
        },
        1.0 - part,
        f"its GPU was {p95:.0f} % busy (95th percentile), with {peak:.0f} of {have} MiB at most",
    )


def _up(amount: float, step: int) -> int:
    return math.ceil(amount / step) * step
