"""Tables of pairs that grow by what was measured, a pair at a time."""

from alnair.model.pair_rates import PairRates
from alnair.profiler.pair_speeds import PairSpeeds


def with_pair(table: PairRates | None, kinds: tuple[str, str], pair: PairSpeeds) -> PairRates:
    """Return the table with what was measured of two kinds; what it had of them is replaced."""
    old = table or PairRates((), ())
    new = tuple(dict.fromkeys((*old.kinds, *kinds)))
    known = old.pairs()
    spread = PairRates(old.kinds, old.spread).pairs() if old.spread else {}
    alone = dict(zip(old.kinds, old.alone or (0.0,) * len(old.kinds), strict=True))
    one, other = kinds
    first, second = pair.first, pair.second
    if one == other:
        # Twice the same kind: both sides measure one figure.
        known[one, one] = round((first.speed + second.speed) / 2, 3)
        spread[one, one] = round(max(first.spread, second.spread), 3)
    else:
        known[one, other], known[other, one] = round(first.speed, 3), round(second.speed, 3)
        spread[one, other], spread[other, one] = round(first.spread, 3), round(second.spread, 3)
    alone |= {one: round(first.alone, 6), other: round(second.alone, 6)}
    return PairRates(
        new,
        _square(new, known),
        tuple(alone.get(kind, 0.0) for kind in new),
        _square(new, spread),
    )


def _square(
    kinds: tuple[str, ...], values: dict[tuple[str, str], float]
) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(values.get((row, column), 0.0) for column in kinds) for row in kinds)
