"""Which kinds of workloads to put on a GPU together, by what was measured of their pairs.

Two that share a GPU do together `own + other` of what each does alone: 1 is what taking turns on
the GPU gives, 2 is no interference. (The original Alnair's PTP ratio adds up steps per second of
both, so that the job with the shorter steps decides.)
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import msgspec

from alnair.model.pair_rates import PairRates

#: Together they do at least so much: sharing is worth it. What the clock and the scheduler of the
#: GPU add to each turn makes 1.0 no gain, and rounds differ by some hundredths.
WORTH: Final = 1.1
#: Together they do less than this: turns would be better, by more than rounds differ.
LOSS: Final = 0.95
#: Neither may run slower than this part of its speed alone, or sharing is at its cost.
LEAST: Final = 0.5
#: Kinds of which the best matching is searched for.
_MOST: Final = 16


class Pairing(msgspec.Struct, frozen=True):
    """Two kinds on one GPU.

    Attributes:
        kinds: The two.
        speeds: Of each, as a part of its speed alone.
        combined: Sum of the speeds.
        spread: How far the sum may be off, by the spreads of the two.
        advice: `share`; `either` (about what turns give); `never` (less than turns give, or at
            the cost of one of them); `unsure` if it would be another one within the spread;
            `unfit` if they do not run together.
    """

    kinds: tuple[str, str]
    speeds: tuple[float, float]
    combined: float
    spread: float
    advice: str


class Packing(msgspec.Struct, frozen=True):
    """What follows from a table.

    Attributes:
        pairings: All pairs that were measured, the best first.
        best: Each kind once, in pairs or alone, so that the GPUs that are used do the most.
        per_gpu: What a GPU of that matching does on average: 1 is one job alone.
    """

    pairings: tuple[Pairing, ...]
    best: tuple[tuple[str, ...], ...]
    per_gpu: float


def packing(table: PairRates, measured: Sequence[tuple[str, str]] = ()) -> Packing:
    """Return what to share and what not.

    Args:
        table: Of one GPU model.
        measured: Pairs that were tried, so that those without speeds are known not to fit; by
            default only those with speeds are told of.
    """
    pairings = sorted(_pairings(table, frozenset(measured)), key=lambda p: (-p.combined, p.kinds))
    worth = {p.kinds: p.combined for p in pairings if p.advice in ("share", "either")}
    best = _matching(table.kinds[:_MOST], worth)
    total = sum(worth[one[0], one[1]] if len(one) == 2 else 1.0 for one in best)
    return Packing(tuple(pairings), best, total / len(best) if best else 0.0)


def _pairings(table: PairRates, measured: frozenset[tuple[str, str]]) -> Iterator[Pairing]:
    speeds = table.pairs()
    spreads = PairRates(table.kinds, table.spread).pairs() if table.spread else {}
    for i, one in enumerate(table.kinds):
        for other in table.kinds[i:]:
            both = speeds[one, other], speeds[other, one]
            if all(both):
                off = spreads.get((one, other), 0.0), spreads.get((other, one), 0.0)
                # Of twice the same, both sides were measured as one figure.
                spread = 2 * off[0] if one == other else math.hypot(*off)
                advice = _advice(both, sum(both))
                if {_advice(both, sum(both) + d) for d in (-spread, spread)} != {advice}:
                    advice = "unsure"
                combined = round(sum(both), 3)
                yield Pairing((one, other), both, combined, round(spread, 3), advice)
            elif {(one, other), (other, one)} & measured:
                yield Pairing((one, other), (0.0, 0.0), 0.0, 0.0, "unfit")


def _advice(speeds: tuple[float, float], combined: float) -> str:
    if combined >= WORTH and min(speeds) >= LEAST:
        return "share"
    # Who takes turns with a kind that holds the GPU for long gets less than half without harm
    # to the sum; who gets much less pays for it.
    return "never" if combined < LOSS or min(speeds) < LEAST / 2 else "either"


def _matching(
    kinds: tuple[str, ...], worth: dict[tuple[str, str], float]
) -> tuple[tuple[str, ...], ...]:
    """Return each kind once, in pairs or alone: the largest sum of what sharing gains."""

    @cache
    def best(left: tuple[str, ...]) -> tuple[float, tuple[tuple[str, ...], ...]]:
        if not left:
            return 0.0, ()
        one, rest = left[0], left[1:]
        gain, groups = best(rest)
        found = (gain, ((one,), *groups))
        for other in rest:
            value = worth.get((one, other), worth.get((other, one), 0.0))
            if value <= 1.0:
                continue
            gain, groups = best(tuple(kind for kind in rest if kind != other))
            # A pair saves a GPU: what it does beyond one job alone is gained.
            if gain + value - 1.0 > found[0]:
                found = gain + value - 1.0, ((one, other), *groups)
        return found

    return best(kinds)[1]
