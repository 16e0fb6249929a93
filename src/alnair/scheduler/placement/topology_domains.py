"""Topology domains of a gang: which parts of the cluster to try it in, and in which order.

A level is a node label, such as that of racks; nodes with the same value are one domain of it. All
domains of a level are judged at once: what each could take is a sum over its nodes, class by class.

The order, which is the rule for users too:

1. the preferred levels as they are given (nearest first), then the required one, then anywhere if
   none is required: first in the fewest domains of the last preferred level;
2. on a level, only domains that have room for the pods that must start together;
3. of these, first those that take most of the gang; then the **tightest**, in which least room for
   its like is left, so that roomy domains stay whole for gangs that need them; then by name.

A gang of which some pods are placed already goes where most of these are: on each level to that
domain alone.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model import names
from alnair.model.workload import GangTopology
from alnair.scheduler.state.nodes.columns import Column, Columns
from alnair.scheduler.state.nodes.labels import ABSENT

Codes = NDArray[np.intp]

#: Where late members of a gang are put near the others, if nothing is said about its topology.
NEAR: Final = tuple(names.TOPOLOGY_PREFIX + level for level in ("rack", "block", "zone"))


class Demand(msgspec.Struct, frozen=True):
    """Pods of one class: how many there are, and how many each row could take, shape (rows,)."""

    count: int
    capacity: Column


class Region(msgspec.Struct, frozen=True):
    """A part of the cluster; `rows` None = all of it."""

    name: str
    rows: Codes | None


class Level:
    """The domains of a level, within those of the required one if there is such a level.

    Attributes:
        codes: (rows,), number of the row's domain, `ABSENT` without one.
        domains: names of the domains by their numbers.
    """

    def __init__(self, columns: Columns, key: str, required: str) -> None:
        self.key = key
        n = columns.n
        codes = columns.labels.column(key)[:n].astype(np.intp)
        codes[~columns.alive[:n]] = ABSENT
        values = columns.labels.values(key)
        self.domains = values
        if required and required != key:
            outer = columns.labels.column(required)[:n]
            mixed = np.where(
                (codes == ABSENT) | (outer == ABSENT), ABSENT, outer * len(values) + codes
            )
            found, inverse = np.unique(mixed, return_inverse=True)
            shift = int(found.size > 0 and found[0] == ABSENT)  # ABSENT is the least
            codes = inverse.reshape(-1) - shift
            self.domains = [values[int(code) % len(values)] for code in found[shift:]]
        self.codes: Codes = codes

    def region(self, code: int) -> Region:
        """Return a domain's rows."""
        rows = np.flatnonzero(self.codes == code)
        return Region(f"{self.key}={self.domains[code]}", rows)

    def home(self, rows: Sequence[int]) -> int | None:
        """Return the domain in which most of these rows are; None if they are in none."""
        there = self.codes[list(rows)]
        there = there[there != ABSENT]
        if not there.size:
            return None
        counts = np.bincount(there)
        most = np.flatnonzero(counts == counts.max())
        return min(map(int, most), key=lambda code: self.domains[code])

    def room(self, demands: Sequence[Demand]) -> tuple[Column, Column]:
        """Return how many of the pods each domain takes, and for how many more there is room."""
        inside = np.flatnonzero(self.codes != ABSENT)
        takes, spare = np.zeros(len(self.domains)), np.zeros(len(self.domains))
        for demand in demands:
            here = np.bincount(
                self.codes[inside], demand.capacity[inside], minlength=len(self.domains)
            )
            taken = np.minimum(here, demand.count)
            takes += taken
            spare += here - taken
        return takes, spare

    def fewest(self, demands: Sequence[Demand], needed: int) -> Region | None:
        """Return few domains that together have room for so many pods; None if all have not."""
        takes, _ = self.room(demands)
        chosen: list[int] = []
        for code in sorted(range(takes.size), key=lambda c: (-takes[c], self.domains[c])):
            if takes[code] <= 0:
                break
            if takes[code] >= needed:
                # The tightest that is enough for the rest.
                enough = [c for c in range(takes.size) if takes[c] >= needed and c not in chosen]
                chosen.append(min(enough, key=lambda c: (takes[c], self.domains[c])))
                rows = np.flatnonzero(np.isin(self.codes, chosen))
                return Region(f"{len(chosen)} domains of {self.key}", rows)
            chosen.append(code)
            needed -= int(takes[code])
        return None

    def ordered(self, demands: Sequence[Demand], needed: int) -> list[int]:
        """Return the domains that have room for so many of the pods, the best first."""
        takes, spare = self.room(demands)
        fits = np.flatnonzero(takes >= needed)
        return sorted(
            map(int, fits), key=lambda code: (-takes[code], spare[code], self.domains[code])
        )


def regions(
    columns: Columns,
    topology: GangTopology | None,
    placed: Sequence[int],
    demands: Sequence[Demand],
    needed: int,
) -> Iterator[Region]:
    """Return where to try the gang, in this order.

    Args:
        columns: nodes.
        topology: what the gang asks for.
        placed: rows on which pods of it are already.
        demands: its other pods.
        needed: how many of these must be placed together; 0 if each may come on its own.
    """
    asked = topology or GangTopology(preferred=NEAR if placed else ())
    required = asked.required
    for key in dict.fromkeys((*asked.preferred, *([required] if required else []))):
        level = Level(columns, key, required)
        home = level.home(placed) if placed else None
        if home is not None:
            yield level.region(home)
        elif not placed or key == required:
            for code in level.ordered(demands, max(needed, 1)):
                yield level.region(code)
    if not required:
        if topology is not None and asked.preferred and not placed:
            level = Level(columns, asked.preferred[-1], "")
            if few := level.fewest(demands, needed):
                yield few
        yield Region("", None)


def lack_of_room(
    columns: Columns, required: str, demands: Sequence[Demand], needed: int
) -> tuple[int, str]:
    """Return for how many pods the roomiest domain of the required level has room, and why not all.

    It goes by room alone; the text is empty if one may do.
    """
    level = Level(columns, required, "")
    takes, _ = level.room(demands)
    present = np.bincount(level.codes[level.codes != ABSENT], minlength=takes.size) > 0
    if not present.any():
        return 0, f"no node has the label {required}, in one of whose domains all its pods must lie"
    takes = np.where(present, takes, -1.0)
    best = max(map(int, np.flatnonzero(present)), key=lambda code: takes[code])
    if takes[best] >= needed:
        return int(takes[best]), ""
    return int(takes[best]), (
        f"none of {int(present.sum())} domains of {required} has room for the {needed} pods that "
        f"must start together; the roomiest, {level.domains[best]}, for {int(takes[best])}"
    )
