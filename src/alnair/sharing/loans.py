"""Memory of a GPU that nobody was granted, lent to tenants that asked for it, and given back.

A tenant that borrows may hold more than its slice, by its loan. Loans are made of what is free on
the GPU when every slice is counted whole, used or not, so no loan stands in the way of what was
granted. They are made on request and as large as the request; who borrowed the least for its slice
comes first. What is lent and not used goes to the next who asks. When an owner comes all loans
become what their tenants hold, and fall with each free; memory that is held cannot be taken away.

A loan that was lowered counts until the next tick: an allocation that was under way has announced
itself by then.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

_MIB: Final = 1 << 20
#: Loans grow by steps of this, so that not every small allocation beyond a slice asks.
STEP: Final = 256 * _MIB
#: Memory of each GPU that is never lent: what the driver takes beyond what anybody is charged. A
#: guess; what is seen in use by nobody with a slice is kept apart besides.
RESERVE: Final = 512 * _MIB


class Tenant(msgspec.Struct, frozen=True):
    """A tenant of one GPU, in bytes.

    Attributes:
        granted: Its slice; 0 is no limit.
        held: What it holds and has announced.
        borrows: May have a loan.
        loan: In force until now.
        asked: Missing for allocations that wait.
        is_waiting: It has just begun to ask, and may be about to use what it was lent.
    """

    granted: int
    held: int = 0
    borrows: bool = False
    loan: int = 0
    asked: int = 0
    is_waiting: bool = False

    @property
    def borrowed(self) -> int:
        """What it holds beyond its slice."""
        return max(0, self.held - self.granted) if self.borrows else 0

    @property
    def taken(self) -> int:
        """What it may hold beyond its slice at this moment."""
        return max(self.loan, self.borrowed) if self.borrows else 0


class Lent(msgspec.Struct, frozen=True):
    """What tenants may hold beyond their slices from now on, and whose requests are answered."""

    loans: dict[str, int]
    answered: frozenset[str]


def room(total: int, outside: int, tenants: Mapping[str, Tenant], claimed: int = 0) -> int:
    """Return the bytes of a GPU that may be lent, all in all; none beside who has no limit.

    Args:
        total: All of its memory.
        outside: In use by nobody with a slice.
        tenants: With slices of it.
        claimed: By those who are about to start.
    """
    if not all(one.granted for one in tenants.values()):
        return 0
    kept = sum(
        one.granted if one.borrows else max(one.granted, one.held) for one in tenants.values()
    )
    return max(0, total - RESERVE - max(0, outside) - kept - claimed)


def lend(there: int, tenants: Mapping[str, Tenant]) -> Lent:
    """Return the loans of one GPU until the next tick.

    Args:
        there: What may be lent, by `room`.
        tenants: Of the GPU.
    """
    borrowers = {name: one for name, one in tenants.items() if one.borrows}
    loans = {name: one.taken for name, one in borrowers.items()}
    asking = [name for name, one in borrowers.items() if one.asked]
    free = there - sum(loans.values())
    if free < 0:
        loans = {name: min(one.loan, one.borrowed) for name, one in borrowers.items()}
        return Lent(loans, frozenset(asking))
    answered = set()
    for name in sorted(asking, key=lambda n: (loans[n] / borrowers[n].granted, n)):
        asked = borrowers[name].asked
        idle = {
            other: loans[other] - one.borrowed
            for other, one in borrowers.items()
            if other != name and other not in answered and not one.is_waiting
        }
        if asked <= free:
            step = min(free, -(-asked // STEP) * STEP)
            loans[name] += step
            free -= step
        elif asked <= free + sum(idle.values()):
            for other, bytes_ in idle.items():
                loans[other] -= bytes_
            continue  # it is known at the next tick whether that is free
        answered.add(name)
    return Lent(loans, frozenset(answered))


def lacking(there: int, tenants: Mapping[str, Tenant]) -> int:
    """Return the bytes that are lent beyond what may be."""
    return max(0, sum(one.taken for one in tenants.values()) - there)


def to_evict(there: int, tenants: Mapping[str, Tenant], leaving: frozenset[str]) -> list[str]:
    """Return who must end so that what may be lent is not exceeded; the largest borrowers first.

    Args:
        there: What may be lent, by `room`.
        tenants: Of the GPU.
        leaving: Those of them who end anyway.
    """
    missing = sum(one.borrowed for one in tenants.values()) - there
    missing -= sum(one.borrowed for name, one in tenants.items() if name in leaving)
    found = []
    for name, one in sorted(tenants.items(), key=lambda item: (-item[1].borrowed, item[0])):
        if missing <= 0 or not one.borrowed:
            break
        if name not in leaving:
            found.append(name)
            missing -= one.borrowed
    return found
