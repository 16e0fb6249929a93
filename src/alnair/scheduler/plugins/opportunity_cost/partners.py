"""How much of cores or of memory goes with a GPU, and whether they run out before GPUs do.

Pods with much of it per GPU belong on nodes that have much per GPU, and so do pods without GPUs.
Where GPUs run out first, the mean of what pods ask for tells the nodes apart. Where the resource
does, all of it is wanted: GPUs of nodes that have much are the way to it, and are for the pods with
the most, as many of them as there are such GPUs.
"""

from typing import Final

import msgspec

from alnair.scheduler.plugins.opportunity_cost.supply import Beside

#: Softness falls from its most, as the resource gets scarce, by so much per part of it.
_SLOPE: Final = 2.0


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What pods ask for of a resource.

    Attributes:
        beside: GPUs and amount of pods with GPUs, by what they ask for.
        apart: the amount of pods without GPUs.
    """

    beside: tuple[tuple[float, float], ...] = ()
    apart: float = 0.0


class Partner(msgspec.Struct, frozen=True, gc=False):
    """A resource beside GPUs.

    Attributes:
        per_gpu: millicores or bytes that go with a GPU: nodes that have more have it in excess.
        softness: m of the soft maximum, in GPUs.
    """

    per_gpu: float
    softness: float


def partner(wanted: Wanted, there: Beside, softest: float, sharpest: float) -> Partner:
    """Return how a resource goes with GPUs.

    Args:
        wanted: by pods of the mix.
        there: on the nodes.
        softest: softness of a resource that there is plenty of.
        sharpest: of one that runs out together with GPUs, or before.
    """
    supply = sum(count for count, _ in there.groups)
    room = sum(amount for _, amount in there.groups)
    gpus = sum(count for count, _ in wanted.beside)
    if not gpus:
        return Partner(room / supply if supply else 0.0, softest)
    mean = sum(amount for _, amount in wanted.beside) / gpus
    if not room or not mean:
        return Partner(mean, softest)
    apart, scarcity = _apart(wanted, there, gpus), scarcity_of(wanted, there)
    softness = min(softest, max(sharpest, _SLOPE * (1.0 - scarcity)))
    part = (softest - softness) / (softest - sharpest) if softest > sharpest else 0.0
    if not part:
        return Partner(mean, softness)
    until_full = supply * min(1.0, 1.0 / scarcity)
    kept = _kept_for_the_most(wanted, there, mean, _level(there, apart * until_full))
    return Partner(mean * (kept / mean) ** part, softness)


def scarcity_of(wanted: Wanted, there: Beside) -> float:
    """Return what all pods ask for per GPU taken over what nodes have per GPU; 0 if none has."""
    supply = sum(count for count, _ in there.groups)
    room = sum(amount for _, amount in there.groups)
    gpus = sum(count for count, _ in wanted.beside)
    if not gpus or not room:
        return 0.0
    mean = sum(amount for _, amount in wanted.beside) / gpus
    return (mean + _apart(wanted, there, gpus)) * supply / room


def _apart(wanted: Wanted, there: Beside, gpus: float) -> float:
    """Return what pods without GPUs ask for per GPU, once they filled the nodes without."""
    supply = sum(count for count, _ in there.groups)
    return max(wanted.apart / gpus - there.elsewhere / supply, 0.0)


def _level(there: Beside, apart: float) -> float:
    """Return how much per GPU rich nodes keep if pods without GPUs take from the richest first."""
    gpus, amount, level = 0, 0, 0.0
    for number, (count, total) in enumerate(there.groups):
        gpus += count
        amount += total
        level = (amount - apart) / gpus
        rest = there.groups[number + 1 :]
        if not rest or level >= rest[0][1] / rest[0][0]:
            break
    return max(level, 0.0)


def _kept_for_the_most(wanted: Wanted, there: Beside, mean: float, level: float) -> float:
    """Return how much per GPU a pod asks for that just belongs on the rich nodes.

    It is what these can give at most, or less, down to the mean, if too few pods ask for so much.
    """
    gpus = sum(count for count, _ in wanted.beside)
    supply = sum(count for count, _ in there.groups)
    asking = 0.0
    ratios = ((amount / count, count) for count, amount in wanted.beside if count > 0)
    found = level
    for ratio, count in sorted(ratios, reverse=True):
        rich = sum(n for n, total in there.groups if total >= found * n)
        if asking * supply >= rich * gpus:
            break
        asking += count
        found = min(found, ratio)
    return min(level, max(found, mean))
