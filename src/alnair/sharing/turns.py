"""Turns of the tenants of a GPU that all want more than they may have.

Left to time slices, such tenants meet on the GPU all the time, which then loses some percent to
switching between them, and their kernels cannot be timed. So each has its window in a period that
all count by one clock. A tenant that uses less than it may is in no need of a turn: it may launch
whenever it likes, and waits for nobody.

The last kernel of one reaches into the next one's window, so who gets less than its share there has
a longer one. Three things look like that and are not, and no window is made longer for them: what
changing turns costs, of which all have a part; a tenant that has less work than its share; and one
that launches nothing for a while, because it had more before, because its price is not known yet,
or because it lies.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.sharing.rates import TenantDemand

#: A tenant is greedy that is held back for this part of the time, or uses this part of its share.
PRESSED: Final = 0.3
FULL: Final = 0.7
#: How fast the window of a tenant grows that gets less than its share (per second, of what it
#: lacks), and how far it grows and shrinks: parts of its share.
STRETCHING: Final = 3.2
STRETCH: Final = 1.0
SHRINK: Final = 0.5
#: What it lacked or had too much is remembered beyond that: up to so much, a part of the GPU.
OUTSTANDING: Final = 0.5
#: So much counts of what a tenant lacks or has too much: a part of the GPU, or of its share. More
#: comes of prices that are not known yet.
LACKING: Final = (0.16, 0.6)
#: What changing turns costs at most, a part of the GPU.
COST: Final = 0.05
#: A tenant has less work than its window has room for that uses less than this part of it, and is
#: held back for less than this part of the time: in the windows of others and by long kernels.
ROOMY: Final = (0.78, 0.8)
#: A tenant that is so many seconds ahead of what it earned lacks nothing: it had it before. As much
#: as one that is idle may save; with kernels that are long for its share it is so at times, too.
OWING: Final = 0.3


class Turn(msgspec.Struct, frozen=True):
    """A tenant's window in each period, as parts of it, and its share.

    `extra` is what its window has beyond its share, because the kernels of others reach into it.
    """

    begin: float
    length: float
    share: float
    extra: float = 0.0


def turns(
    demands: Mapping[str, TenantDemand],
    granted: Mapping[str, float],
    before: Mapping[str, Turn] | None = None,
    seconds: float = 0.05,
) -> dict[str, Turn]:
    """Turns for tenants that all want more than they may have; others have none.

    Args:
        demands: all tenants of a GPU.
        granted: what `rates.grant` gave them.
        before: the turns until now.
        seconds: how long those held.
    """
    greedy = [
        name
        for name, demand in demands.items()
        if demand.active and (demand.pressed > PRESSED or demand.used_long > FULL * granted[name])
    ]
    if len(greedy) < 2 or not all(demands[name].limited for name in greedy):
        return {}
    total = sum(granted[name] for name in greedy)
    rest = sum(
        demand.used for name, demand in demands.items() if name not in greedy and demand.active
    )
    scale = min(1.0, max(0.5, (1.0 - rest) / total))
    due = {name: granted[name] * scale for name in greedy}
    missing = _missing(demands, due, before or {})
    extra = {
        name: _within(OUTSTANDING, turn.extra + STRETCHING * seconds * missing[name])
        if (turn := (before or {}).get(name))
        else 0.0
        for name in greedy
    }
    windows = {
        name: share + min(STRETCH * share, max(-SHRINK * share, extra[name]))
        for name, share in granted.items()
        if name in extra
    }
    whole = sum(windows.values())
    found: dict[str, Turn] = {}
    begin = 0.0
    for name in greedy:
        length = windows[name] / whole
        found[name] = Turn(begin, length, due[name], extra[name])
        begin += length
    return found


def _missing(
    demands: Mapping[str, TenantDemand], due: Mapping[str, float], before: Mapping[str, Turn]
) -> dict[str, float]:
    """Return by greedy tenant how much more of the GPU its window should give it."""
    lacking = {
        n: _within(max(LACKING[0], LACKING[1] * due[n]), due[n] - demands[n].used_turn) for n in due
    }
    filled = {n for n in due if not _stands_empty(demands[n], before.get(n))}
    cost = _within(COST, sum(due[n] - demands[n].used_slow for n in filled))
    total = sum(due[n] for n in filled)
    # Half of the cost in equal parts, for each change costs both the same, and half by shares:
    # else a small tenant would bear much of its share, or a large one more points than others.
    return {
        n: lacking[n] - cost * (1 / len(filled) + due[n] / total) / 2
        if n in filled
        else min(0.0, lacking[n])
        for n in due
    }


def _stands_empty(demand: TenantDemand, turn: Turn | None) -> bool:
    """Whether a longer window would stand empty: it has little work, or waits for what it owes."""
    used, pressed = ROOMY
    has_room = turn is not None and demand.used_slow < used * turn.length
    return (has_room and demand.pressed < pressed) or demand.owes > OWING


def _within(bound: float, value: float) -> float:
    return min(bound, max(-bound, value))
