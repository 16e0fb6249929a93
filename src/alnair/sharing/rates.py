"""Which share of a GPU's time each container may use now: the vGPU server asks at every tick.

A hard tenant has its guaranteed share, never more. Soft tenants divide what nobody asks for by
weighted max-min fairness, the guaranteed shares being the weights. The guaranteed share itself is
granted at all times, also to a tenant that sleeps: who wakes need not wait for a tick, and the
others give back what they had borrowed at the next one. A low tenant has at most its part of
`YIELDED` while a tenant of the upper class works.

Shares are GPU time per time: 1.0 is all of one GPU.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

#: A tenant counts as active so long after its last work: long enough for requests that come twenty
#: times a second, short enough for a low tenant to go on soon.
LINGER_NS: Final = 250_000_000
#: What all low tenants have together while one of the upper class is active.
YIELDED: Final = 0.05
#: A tenant that is not held back is expected to want so much more than it used (a factor, a share).
ROOM: Final = (1.25, 0.05)
#: Use is a mean over about so long.
SMOOTHED_NS: Final = 100_000_000
#: Corrections of prices stay in these bounds, whatever was measured.
SCALES: Final = (0.25, 4.0)
#: What is left of a measurement's weight when the next one comes, a second later.
REMEMBERED: Final = 0.85
#: GPU seconds that must have been measured before a price is corrected: NVML gives whole percents.
MEASURABLE: Final = 0.1


class Reading(msgspec.Struct, frozen=True):
    """The counters of one tenant on one GPU, summed over its processes (native/vgpu/abi.h)."""

    now_ns: int
    charged_ns: int
    launches: int
    waiting: int


class Activity(msgspec.Struct, frozen=True):
    """What the readings so far say of a tenant."""

    last: Reading
    #: GPU time charged per time, a moving mean.
    used: float = 0.0
    #: Has been held back, or still is, since the reading before the last.
    held_back: bool = False
    #: Time of its last sign of work; None: none seen.
    worked_ns: int | None = None

    def is_active(self, now_ns: int) -> bool:
        """Whether it had work lately."""
        return self.worked_ns is not None and now_ns - self.worked_ns <= LINGER_NS


class Claim(msgspec.Struct, frozen=True):
    """A tenant of a GPU as `grant` sees it.

    Attributes:
        guaranteed: its share, above 0 and at most 1.
        soft: may use what others leave.
        low: yields to tenants that are not low.
        active: has work now.
        used: share that it uses.
        held_back: would use more if it could.
    """

    guaranteed: float
    soft: bool = False
    low: bool = False
    active: bool = True
    used: float = 0.0
    held_back: bool = False

    @property
    def wants(self) -> float:
        """Share that it is expected to use if it may."""
        if not self.active:
            return 0.0
        expected = 1.0 if self.held_back else min(1.0, self.used * ROOM[0] + ROOM[1])
        return expected if self.soft else min(expected, self.guaranteed)


class Price(msgspec.Struct, frozen=True):
    """How far a tenant's predicted GPU time is off: both sums forget what is long ago.

    The library times kernels by events, which span the time slices of other containers, too. How
    much of such a time was its own it can only guess; the driver's accounting knows in the mean.
    """

    predicted: float = 0.0
    measured: float = 0.0

    @property
    def scale(self) -> float:
        """The factor on predicted GPU time."""
        if min(self.predicted, self.measured) < MEASURABLE:
            return 1.0
        low, high = SCALES
        return min(high, max(low, self.measured / self.predicted))


def observe(before: Activity | None, reading: Reading) -> Activity:
    """Adds a reading.

    Counters that went back (a process ended, and its slot was freed) count as no work since then.
    """
    if before is None or reading.now_ns <= before.last.now_ns:
        worked = reading.now_ns if reading.waiting else None
        return Activity(reading, held_back=reading.waiting > 0, worked_ns=worked)
    span = reading.now_ns - before.last.now_ns
    charged = max(0, reading.charged_ns - before.last.charged_ns)
    weight = min(1.0, span / SMOOTHED_NS)
    has_work = charged > 0 or reading.launches > before.last.launches or reading.waiting > 0
    return Activity(
        last=reading,
        used=before.used + weight * (charged / span - before.used),
        held_back=reading.waiting > 0 or before.last.waiting > 0,
        worked_ns=reading.now_ns if has_work else before.worked_ns,
    )


def grant(claims: Mapping[str, Claim]) -> dict[str, float]:
    """The share of each tenant of one GPU until the next tick.

    The shares of those that are active sum up to at most 1 if the guaranteed ones do.
    """
    upper = {name: claim for name, claim in claims.items() if not claim.low}
    lower = {name: claim for name, claim in claims.items() if claim.low}
    is_yielding = any(claim.active for claim in upper.values())
    granted = _divide(upper, 1.0)
    if not is_yielding:
        return granted | _divide(lower, 1.0)
    weight = sum(claim.guaranteed for claim in lower.values())
    return granted | {
        name: min(claim.guaranteed, YIELDED * claim.guaranteed / weight)
        for name, claim in lower.items()
    }


def neighbours(name: str, claims: Mapping[str, Claim]) -> tuple[int, float]:
    """(how many other tenants are active, the share that they use together)."""
    others = [claim.used for other, claim in claims.items() if other != name and claim.active]
    return len(others), min(1.0, sum(others))


def weigh(before: Price, *, predicted: float, measured: float) -> Price:
    """Adds a second's measurement.

    Args:
        before: what was known.
        predicted: GPU seconds that the tenant was charged, without any correction.
        measured: GPU seconds that NVML gives its processes for the same time.
    """
    return Price(before.predicted * REMEMBERED + predicted, before.measured * REMEMBERED + measured)


def _divide(claims: Mapping[str, Claim], capacity: float) -> dict[str, float]:
    """Guaranteed shares first, then wishes, then whatever is left, for who may borrow."""
    used = {name: min(claim.guaranteed, claim.wants) for name, claim in claims.items()}
    soft = {name: claim for name, claim in claims.items() if claim.soft and claim.active}
    for limits in ({name: claim.wants for name, claim in soft.items()}, dict.fromkeys(soft, 1.0)):
        spare = max(0.0, capacity - sum(used.values()))
        used |= _filled(
            spare,
            {name: used[name] for name in soft},
            limits,
            {name: claim.guaranteed for name, claim in soft.items()},
        )
    return {name: max(claim.guaranteed, used[name]) for name, claim in claims.items()}


def _filled(
    spare: float,
    shares: Mapping[str, float],
    limits: Mapping[str, float],
    weights: Mapping[str, float],
) -> dict[str, float]:
    """Raises shares together until `spare` is spent: max-min fair in share / weight, to limits."""
    filled = dict(shares)
    order = {name: limits[name] / weights[name] for name in filled}
    total = spare + sum(filled.values())
    # The water level: all whose limit lies below it get their limit, the others weight x level;
    # those who already have more keep it.
    fixed: dict[str, float] = {}
    while open_ := [name for name in filled if name not in fixed]:
        level = (total - sum(fixed.values())) / sum(weights[name] for name in open_)
        above = [name for name in open_ if filled[name] > weights[name] * level]
        if above:
            fixed |= {name: filled[name] for name in above}
            continue
        full = [name for name in open_ if order[name] <= level]
        if not full:
            return fixed | {name: weights[name] * level for name in open_}
        fixed |= {name: max(filled[name], limits[name]) for name in full}
    return fixed
