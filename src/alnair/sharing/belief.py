"""How far the word of a tenant about its own work is believed: as far as the driver bears it out.

A tenant's counters are its own to write. What it says of its work takes lending from others, and
makes them take turns; so what is kept for it is held against what NVML saw of its processes. NVML
comes a second late, and those who wake need not wait for it: a tenant is believed in advance, for
`BUDGET` GPU seconds. What was kept for it and not used comes off that, and comes back slowly. Who
has used it up is believed what NVML saw, and the room that everybody has to grow. Guaranteed shares
are granted to all, believed or not.

What it hides would be taken from others, too: they are granted what it seems to leave, have no
turns beside it, and are priced as if it were not there. Who hid `HIDDEN` counts as using what NVML
saw.
"""

from typing import Final

import msgspec

from alnair.sharing.rates import ROOM, TenantDemand

#: GPU seconds that may be kept for a tenant in advance.
BUDGET: Final = 2.5
#: A tenant that is doubted is believed again when this part of the budget is left.
REGAINED: Final = 0.5
#: What comes back of the budget per second, and per GPU second that was claimed and used.
FORGIVEN: Final = (0.004, 0.02)
#: Looks in which NVML may show what was claimed in one: its samples come late, and have gaps.
LATE: Final = 3
#: GPU seconds that NVML saw and its page did not tell of, until what it tells is no more believed.
HIDDEN: Final = 0.25
#: So much counts of one look at most: a kernel of seconds is charged when it is over.
HIDDEN_STEP: Final = 0.2
#: Kept of them at most, and what comes off per second.
HIDDEN_MOST: Final = 1.25
DISCLOSED: Final = 0.02
#: What it tells may be so much less than NVML saw: a factor, and a share.
#: Prices are found out late.
UNTOLD: Final = (0.75, 0.05)
#: After so many looks without any use, so much room to grow is kept (a share), not `rates.ROOM`.
UNSEEN: Final = 10
ROOM_UNSEEN: Final = 0.01


class Belief(msgspec.Struct, frozen=True):
    """What the driver bore out of one tenant on one GPU.

    Attributes:
        unproven: GPU seconds that were kept for it and that nobody saw used.
        claims: (GPU seconds claimed, seconds) of the last looks, the oldest first.
        proven: Shares that NVML saw in the same looks; empty while it does not measure.
        unseen: Looks in a row in which it saw none.
        is_doubted: Is believed no more than NVML saw.
        told: Shares that it said it used in the same looks, as it was charged.
        hidden: GPU seconds that NVML saw and that it did not tell of.
    """

    unproven: float = 0.0
    claims: tuple[tuple[float, float], ...] = ()
    proven: tuple[float, ...] = ()
    unseen: int = 0
    is_doubted: bool = False
    told: tuple[float, ...] = ()
    hidden: float = 0.0

    @property
    def found(self) -> float:
        """The share that it uses at least, whatever it tells."""
        if self.hidden < HIDDEN or not self.proven:
            return 0.0
        return sum(self.proven) / len(self.proven)

    @property
    def room(self) -> float:
        """The share by which it may want more than it uses."""
        return ROOM[1] if self.unseen < UNSEEN else ROOM_UNSEEN

    @property
    def borne_out(self) -> float:
        """The share that it may want by what NVML saw."""
        return min(1.0, max(self.proven, default=0.0) * ROOM[0] + self.room)


def prove(
    before: Belief, *, claimed: float, told: float, measured: float | None, seconds: float
) -> Belief:
    """Return the belief after one more look.

    Args:
        before: Until now.
        claimed: GPU seconds that were kept for the tenant since the last look.
        told: GPU seconds that its page says it was charged since.
        measured: Share that NVML saw its processes use; None where it does not measure, and all is
            believed.
        seconds: Since the last look.
    """
    if measured is None or seconds <= 0:
        return Belief()
    claims = (*before.claims, (claimed, seconds))[-LATE:]
    after = msgspec.structs.replace(
        before,
        claims=claims,
        proven=(*before.proven, measured)[-LATE:],
        unseen=0 if measured > 0 else before.unseen + 1,
        told=(*before.told, max(0.0, told) / seconds)[-LATE:],
    )
    hidden = before.hidden - DISCLOSED * seconds
    if len(after.told) == LATE:
        # NVML may show it a look later, and a long kernel is charged when it begins.
        untold = max(0.0, measured * UNTOLD[0] - UNTOLD[1] - max(after.told)) * seconds
        hidden += min(HIDDEN_STEP, untold)
    unproven = before.unproven - FORGIVEN[0] * seconds
    unproven -= FORGIVEN[1] * min(claimed, measured * seconds)
    if len(claims) == LATE:
        oldest, span = claims[0]
        unproven += max(0.0, oldest - after.borne_out * span)
    unproven = min(BUDGET, max(0.0, unproven))
    kept_off = before.is_doubted and unproven > BUDGET * (1 - REGAINED)
    return msgspec.structs.replace(
        after,
        unproven=unproven,
        is_doubted=unproven >= BUDGET or kept_off,
        hidden=min(HIDDEN_MOST, max(0.0, hidden)),
    )


def believed(demand: TenantDemand, belief: Belief) -> TenantDemand:
    """Return what is believed of a tenant's demand.

    A hard tenant is never believed to use more than its share: its library would not let it.
    """
    most = 1.0 if demand.soft else demand.guaranteed
    if belief.found:
        demand = msgspec.structs.replace(
            demand,
            active=True,
            used=max(demand.used, belief.found),
            used_long=max(demand.used_long, belief.found),
            used_turn=max(demand.used_turn, belief.found),
        )
    if not belief.is_doubted:
        if demand.used <= most and demand.room == belief.room:
            return demand  # most of them, most of the time
        return msgspec.structs.replace(demand, used=min(demand.used, most), room=belief.room)
    most = min(most, belief.borne_out)
    return msgspec.structs.replace(
        demand,
        used=min(demand.used, most),
        used_long=min(demand.used_long, most),
        used_turn=min(demand.used_turn, most),
        used_slow=min(demand.used_slow, most),
        held_back=False,
        pressed=0.0,
        room=belief.room,
        most=most,
    )
