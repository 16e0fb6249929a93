"""How fast kinds of workloads run in pairs on one GPU, as measured: the one home of that format.

A file of pairs is a JSON object of tables by GPU model. What a mode of sharing other than taking
turns brings has tables of its own, `MODEL/mps` and `MODEL/limited`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from alnair.model.workload import GpuDemand

#: The GPU takes turns; its clients share it through MPS; each has an enforced share of its time.
TIME_SLICED: Final = "time-sliced"
MPS: Final = "mps"
LIMITED: Final = "limited"
MODES: Final = (TIME_SLICED, MPS, LIMITED)
#: Kinds of `alnair profile pair --suite` (`alnair.node.pairing.suite`), by the profiler's words.
_BY_BOTTLENECK: Final = {"memory-bound": "memory-bound", "input-bound": "input-bound"}
_BY_TYPE: Final = {"training": "training", "inference": "inference"}


class PairRates(msgspec.Struct, frozen=True, omit_defaults=True):
    """Measured speeds of pairs on one GPU model.

    Attributes:
        kinds: names of what was measured.
        rates: row by row, the speed of the row's kind beside the column's, as a part of its speed
            alone; 0 where the two do not fit together, or were not measured.
        alone: steps per second of each kind alone, 0 where that was not measured; None where
            nothing is known of it.
        spread: row by row, half of the range of each rate over the rounds; None where nothing is
            known of it.
    """

    kinds: tuple[str, ...]
    rates: tuple[tuple[float, ...], ...]
    alone: tuple[float, ...] | None = None
    spread: tuple[tuple[float, ...], ...] | None = None

    def pairs(self) -> dict[tuple[str, str], float]:
        """Return the speeds by (kind, kind beside it)."""
        return {
            (row, column): self.rates[i][j]
            for i, row in enumerate(self.kinds)
            for j, column in enumerate(self.kinds)
        }


#: By GPU model, or model and mode.
PairTables = Mapping[str, PairRates]


class Measured(NamedTuple):
    """The speeds of two neighbours, as parts of their speeds alone, and whose table says so."""

    own: float
    other: float
    table: str

    @property
    def slowdown(self) -> float:
        """By how much both slow down together: 1 = not at all."""
        return 2.0 / (self.own + self.other)


class Pairs:
    """What tables say of two kinds.

    Args:
        tables: as a file has them.
        default: the model whose table stands for models without any; empty = none does.
    """

    def __init__(self, tables: PairTables, default: str = "") -> None:
        self.tables = dict(tables)
        self.kinds = frozenset(kind for table in tables.values() for kind in table.kinds)
        self._default = spelling(default)
        self._names = {spelling(name): name for name in tables}
        self._speeds = {spelling(name): table.pairs() for name, table in tables.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairs) and self.tables == other.tables

    __hash__ = None  # type: ignore[assignment]

    def measured(self, model: str, mode: str, own: str, other: str) -> Measured | None:
        """Return what was measured of two kinds on a GPU model; None if nothing was.

        A mode without figures of the two has those of taking turns.
        """
        if not own or not other:
            return None
        plain = spelling(model)
        if plain not in self._speeds:
            plain = self._default
        for name in (spelling(f"{model}/{mode}"), plain):
            table = self._speeds.get(name, {})
            speeds = table.get((own, other), 0.0), table.get((other, own), 0.0)
            if all(speeds):
                return Measured(*speeds, self._names[name])
        return None

    def has(self, model: str) -> bool:
        """Return whether there is any table of this GPU model."""
        return any(name.partition("/")[0] == spelling(model) for name in self._names)


def seen_kind(bottleneck: str | None, workload_type: str | None) -> str:
    """Return what kind of the suite's a workload is like, by what the profiler says of it.

    Args:
        bottleneck: Of the annotation `workload`; it says more of a neighbour than the type.
        workload_type: The annotation's `type`.
    """
    return _BY_BOTTLENECK.get(bottleneck or "") or _BY_TYPE.get(workload_type or "", "")


def table_name(model: str, mode: str) -> str:
    """Return what the table of a mode is called."""
    return model if mode == TIME_SLICED else f"{model}/{mode}"


def mode_of(demand: GpuDemand) -> str:
    """Return how a pod with slices shares its GPU."""
    if demand.mps:
        return MPS
    return LIMITED if demand.hard and 0 < demand.compute < 100 else TIME_SLICED


@lru_cache(maxsize=1024)
def spelling(model: str) -> str:
    """Return a model as one spelling of its many: `Tesla-K80` and `K80` are the same GPU."""
    name, slash, mode = model.partition("/")
    words = re.sub(r"[-_ ()]+", " ", name).lower().split()
    return " ".join(w for w in words if w not in ("nvidia", "tesla", "geforce")) + slash + mode


def problems(tables: PairTables) -> Iterator[str]:
    """Yield what is wrong with tables beyond their types, each with its place and what to do."""
    seen: dict[str, str] = {}
    for name, table in tables.items():
        yield from (f"{name}: {line}" for line in _wrong(name, table))
        if (other := seen.setdefault(spelling(name), name)) != name:
            yield f"{name}: is the same GPU model as {other}: keep one of the tables"


def _wrong(name: str, table: PairRates) -> Iterator[str]:
    size = len(table.kinds)
    for kind in sorted({kind for kind in table.kinds if table.kinds.count(kind) > 1}):
        yield f"kinds: {kind!r} is there twice: keep one"
    if not name.partition("/")[0] or "" in table.kinds:
        yield "a GPU model or kind has no name: give it one"
    mode = name.partition("/")[2]
    if "/" in name and mode not in MODES[1:]:
        known = " and ".join(mode for mode in MODES if mode != TIME_SLICED)
        yield f"{mode!r} is no mode of sharing that has a table of its own: known are {known}"
    for field in ("rates", "spread"):
        rows = getattr(table, field)
        if rows is None:
            continue
        if len(rows) != size or any(len(row) != size for row in rows):
            yield f"{field} are not {size} rows of {size}: one for each of kinds"
            continue
        for kind, row in zip(table.kinds, rows, strict=True):
            for beside, rate in zip(table.kinds, row, strict=True):
                if not 0 <= rate <= 1:
                    yield f"{field}: {kind!r} beside {beside!r} is {rate:g}: write 0 to 1"
    if table.alone is not None and len(table.alone) != size:
        yield f"alone are not {size} numbers: one for each of kinds"
    if any(not 0 <= rate < float("inf") for rate in table.alone or ()):
        yield "alone: a number of steps per second is negative"
