"""How fast two workloads run beside one another, from rates measured alone and together."""

import statistics
from collections.abc import Sequence

import msgspec


class Round(msgspec.Struct, frozen=True):
    """One measurement of everything, steps per second.

    Attributes:
        alone: Of each of the two with the GPU to itself.
        together: Of each beside the other.
    """

    alone: tuple[float, float]
    together: tuple[float, float]


class Side(msgspec.Struct, frozen=True):
    """One of the two.

    Attributes:
        alone: Steps per second alone, median of the rounds.
        together: The same beside the other.
        speed: Together over alone, median of the rounds' own ratios; at most 1.
        spread: Half of the range of these ratios.
    """

    alone: float
    together: float
    speed: float
    spread: float


class PairSpeeds(msgspec.Struct, frozen=True):
    """What was measured of a pair.

    Attributes:
        first, second: The two.
        combined: Sum of both speeds: 1 is what taking turns gives, 2 is no interference.
        rounds: How often it was measured.
    """

    first: Side
    second: Side
    combined: float
    rounds: int


def summarise(rounds: Sequence[Round]) -> PairSpeeds:
    """Return the medians over rounds.

    Each round's ratio is taken by itself, so that a machine that gets slower over minutes does not
    count as interference.
    """
    first, second = (_side(rounds, which) for which in (0, 1))
    return PairSpeeds(first, second, first.speed + second.speed, len(rounds))


def _side(rounds: Sequence[Round], which: int) -> Side:
    ratios = [one.together[which] / one.alone[which] for one in rounds]
    return Side(
        alone=statistics.median(one.alone[which] for one in rounds),
        together=statistics.median(one.together[which] for one in rounds),
        speed=min(1.0, statistics.median(ratios)),
        spread=(max(ratios) - min(ratios)) / 2,
    )
