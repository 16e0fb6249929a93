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
SMOOTHED_LONG_NS: Final = 500_000_000
SMOOTHED_SLOW_NS: Final = 1_500_000_000
#: At least so long, of one that has just begun to work: two looks tell that it is greedy.
SMOOTHED_FIRST_NS: Final = 200_000_000
#: Time in which each greedy tenant has its turn. The GPU loses about 0.1 ms at each change, and
#: a kernel that is longer than its window disturbs the next one's; who waits may wait so long.
#: Neither a second nor NVML's samples, of a sixth of one, are a multiple of it: where NVML has only
#: the last sample, each look would show the same part of a period, and one tenant all the time.
PERIOD_NS: Final = 220_000_000
#: Corrections of prices stay in these bounds, whatever was measured.
SCALES: Final = (0.25, 16.0)
#: What is left of a measurement's weight when the next one comes, a second later.
REMEMBERED: Final = 0.85
#: When a tenant begins to take turns, the price so far counts like so many seconds' measurements: a
#: single one may be off by a tenth, as it hardly holds a whole number of long kernels.
TRUSTED: Final = 2.0
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
    #: The same over a longer time, and how much of that time it was held back.
    used_long: float = 0.0
    pressed: float = 0.0
    #: GPU time charged per time over a time in which all windows and long kernels even out.
    used_slow: float = 0.0
    #: Has been held back, or still is, since the reading before the last.
    held_back: bool = False
    #: Time of its last sign of work; None: none seen.
    worked_ns: int | None = None
    #: Since when it has been active without a pause; of what was before, means tell nothing.
    since_ns: int = 0
    #: (time, GPU time charged until then) at the readings of the last period of turns.
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def used_turn(self) -> float:
        """GPU time charged per time over the last period of turns, in which each had its window.

        A moving mean tells of it so late that windows corrected by it go to and fro.
        """
        if len(self.marks) < 2:
            return self.used
        (first_ns, first), (then_ns, then) = self.marks[:2]
        last_ns, last = self.marks[-1]
        begin_ns = max(first_ns, last_ns - PERIOD_NS)
        before = first + (then - first) * (begin_ns - first_ns) / (then_ns - first_ns)
        return (last - before) / (last_ns - begin_ns)

    def is_active(self, now_ns: int) -> bool:
        """Whether it had work lately."""
        return self.worked_ns is not None and now_ns - self.worked_ns <= LINGER_NS


class TenantDemand(msgspec.Struct, frozen=True):
    """A tenant of a GPU as `grant` sees it.

    Attributes:
        guaranteed: its share, above 0 and at most 1.
        soft: may use what others leave.
        low: yields to tenants that are not low.
        active: has work now.
        used: share that it uses.
        held_back: would use more if it could.
        pressed: how much of the time it is held back.
        used_long: share that it uses, over a longer time.
        used_turn: share that it used in the last period of turns.
        used_slow: share that it uses, over the longest time.
        owes: seconds until it has earned what it was charged.
        limited: has a limit; whoever has none cannot be told to take turns.
        by_mps: its processes are clients of an MPS server.
        room: share by which it may want more than it used.
        most: share that it is believed to want at most.
    """

    guaranteed: float
    soft: bool = False
    low: bool = False
    active: bool = True
    used: float = 0.0
    held_back: bool = False
    pressed: float = 0.0
    used_long: float = 0.0
    used_turn: float = 0.0
    used_slow: float = 0.0
    owes: float = 0.0
    limited: bool = True
    by_mps: bool = False
    room: float = ROOM[1]
    most: float = 1.0

    @property
    def wants(self) -> float:
        """Share that it is expected to use if it may."""
        if not self.active:
            return 0.0
        expected = self.most
        if not self.held_back:
            expected = min(expected, self.used * ROOM[0] + self.room)
        return expected if self.soft else min(expected, self.guaranteed)


#: Measurements left out at the start, and when a limit changes.
SETTLING: Final = 2


class Price(msgspec.Struct, frozen=True):
    """How far a tenant's predicted GPU time is off: both sums forget what is long ago.

    The library times kernels by events, which span the time slices of other containers, too. How
    much of such a time was its own it can only guess; the driver's accounting knows in the mean.
    """

    predicted: float = 0.0
    measured: float = 0.0
    #: Who takes turns on the GPU with it.
    beside: frozenset[str] = frozenset()
    #: Percent that is guaranteed to it.
    percent: int = 0
    #: Measurements to leave out yet: NVML's samples come later than what is charged.
    settling: int = SETTLING
    #: The factor until then.
    until_measured: float = 1.0

    @property
    def scale(self) -> float:
        """The factor on predicted GPU time."""
        if min(self.predicted, self.measured) < MEASURABLE:
            return self.until_measured
        low, high = SCALES
        return min(high, max(low, self.measured / self.predicted))


def observe(before: Activity | None, reading: Reading) -> Activity:
    """Adds a reading.

    Counters that went back (a process ended, and its slot was freed) count as no work since then.
    """
    if before is None or reading.now_ns <= before.last.now_ns:
        worked = reading.now_ns if reading.waiting else None
        held_back = reading.waiting > 0
        return Activity(reading, held_back=held_back, worked_ns=worked, since_ns=reading.now_ns)
    span = reading.now_ns - before.last.now_ns
    charged = max(0, reading.charged_ns - before.last.charged_ns)
    has_work = charged > 0 or reading.launches > before.last.launches or reading.waiting > 0
    began = has_work and not before.is_active(reading.now_ns)
    since_ns = before.last.now_ns if began else before.since_ns
    known_ns = max(SMOOTHED_FIRST_NS, reading.now_ns - since_ns)
    weight = min(1.0, span / SMOOTHED_NS)
    slowly = min(1.0, span / min(SMOOTHED_LONG_NS, known_ns))
    slowest = min(1.0, span / min(SMOOTHED_SLOW_NS, known_ns))
    return Activity(
        last=reading,
        used=before.used + weight * (charged / span - before.used),
        pressed=before.pressed + slowly * ((reading.waiting > 0) - before.pressed),
        used_long=before.used_long + slowly * (charged / span - before.used_long),
        used_slow=before.used_slow + slowest * (charged / span - before.used_slow),
        held_back=reading.waiting > 0 or before.last.waiting > 0,
        worked_ns=reading.now_ns if has_work else before.worked_ns,
        since_ns=since_ns,
        marks=_marked(before, reading.now_ns, charged),
    )


def _marked(before: Activity, now_ns: int, charged: int) -> tuple[tuple[int, int], ...]:
    """Adds a mark; of those before the period that ends now, the last one stays."""
    marks = before.marks or ((before.last.now_ns, 0),)
    marks = (*marks, (now_ns, marks[-1][1] + charged))
    while marks[1][0] <= now_ns - PERIOD_NS:
        marks = marks[1:]
    return marks


def grant(demands: Mapping[str, TenantDemand]) -> dict[str, float]:
    """The share of each tenant of one GPU until the next tick.

    The shares of those that are active sum up to at most 1 if the guaranteed ones do.
    """
    upper = {name: demand for name, demand in demands.items() if not demand.low}
    lower = {name: demand for name, demand in demands.items() if demand.low}
    is_yielding = any(demand.active for demand in upper.values())
    granted = _divide(upper, 1.0)
    if not is_yielding:
        return granted | _divide(lower, 1.0)
    weight = sum(demand.guaranteed for demand in lower.values())
    return granted | {
        name: min(demand.guaranteed, YIELDED * demand.guaranteed / weight)
        for name, demand in lower.items()
    }


def neighbours(name: str, demands: Mapping[str, TenantDemand]) -> tuple[int, float]:
    """(how many other tenants cut its kernels by slices, the share that they use, to a hundredth).

    Clients of an MPS server run side by side: they cut nothing of one another's, and are one to all
    who are none.
    """
    me = demands.get(name)
    others = [demand for other, demand in demands.items() if other != name and demand.active]
    apart = [demand for demand in others if not demand.by_mps]
    clients = [] if me is not None and me.by_mps else [d for d in others if d.by_mps]
    used = sum(demand.used for demand in (*apart, *clients))
    return len(apart) + bool(clients), min(1.0, round(used, 2))


def moved(before: Price, beside: frozenset[str], percent: int = 0) -> Price:
    """The price of a tenant that takes turns with these; what was known beside others is void.

    Prices that were too high were so because slices of others were timed, too, which turns end.
    What was known under another limit stays, but the next figures mix both limits.

    Args:
        before: what was known.
        beside: who takes turns with it.
        percent: what is guaranteed to it.
    """
    if beside != before.beside:
        scale, known = max(1.0, before.scale), TRUSTED * percent / 100
        return Price(known, known * scale, beside, percent, until_measured=scale)
    if percent != before.percent:
        return msgspec.structs.replace(before, percent=percent, settling=SETTLING)
    return before


def weigh(before: Price, *, predicted: float, measured: float) -> Price:
    """Adds a second's measurement.

    Args:
        before: what was known.
        predicted: GPU seconds that the tenant was charged, without any correction.
        measured: GPU seconds that NVML gives its processes for the same time.
    """
    if before.settling:
        return msgspec.structs.replace(before, settling=before.settling - 1)
    return msgspec.structs.replace(
        before,
        predicted=before.predicted * REMEMBERED + predicted,
        measured=before.measured * REMEMBERED + measured,
    )


def _divide(demands: Mapping[str, TenantDemand], capacity: float) -> dict[str, float]:
    """Guaranteed shares first, then wishes, then whatever is left, for who may borrow."""
    used = {name: min(demand.guaranteed, demand.wants) for name, demand in demands.items()}
    soft = {name: demand for name, demand in demands.items() if demand.soft and demand.active}
    for limits in ({name: demand.wants for name, demand in soft.items()}, dict.fromkeys(soft, 1.0)):
        spare = max(0.0, capacity - sum(used.values()))
        used |= _filled(
            spare,
            {name: used[name] for name in soft},
            limits,
            {name: demand.guaranteed for name, demand in soft.items()},
        )
    return {name: max(demand.guaranteed, used[name]) for name, demand in demands.items()}


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
