"""Files of measured pairs, which grow by a pair at a time; the shipped one has the same format."""

from pathlib import Path

import msgspec

from alnair.profiler.pair_speeds import PairSpeeds
from alnair.sim.interference import PairRates


class PairTableError(ValueError):
    """A file is no table of pairs: which, and why."""


def load(path: Path) -> dict[str, PairRates]:
    """Return the tables of a file by GPU model; none where there is no file.

    Raises:
        PairTableError: It is something else.
    """
    if not path.exists():
        return {}
    try:
        tables = msgspec.json.decode(path.read_bytes(), type=dict[str, PairRates])
    except msgspec.MsgspecError as error:
        raise PairTableError(f"{path}: no table of pairs: {error}") from None
    for model, table in tables.items():
        size = len(table.kinds)
        if len(table.rates) != size or any(len(row) != size for row in table.rates):
            raise PairTableError(f"{path}: {model}: rates are not {size} rows of {size}")
    return tables


def with_pair(table: PairRates | None, kinds: tuple[str, str], pair: PairSpeeds) -> PairRates:
    """Return the table with what was measured of two kinds; what it had of them is replaced."""
    old = table or PairRates((), ())
    new = tuple(dict.fromkeys((*old.kinds, *kinds)))
    known = {
        (row, column): old.rates[i][j]
        for i, row in enumerate(old.kinds)
        for j, column in enumerate(old.kinds)
    }
    alone = dict(zip(old.kinds, old.alone or (0.0,) * len(old.kinds), strict=True))
    one, other = kinds
    if one == other:
        # Twice the same kind: both sides measure one figure.
        known[one, one] = round((pair.first.speed + pair.second.speed) / 2, 3)
    else:
        known[one, other] = round(pair.first.speed, 3)
        known[other, one] = round(pair.second.speed, 3)
    alone |= {one: round(pair.first.alone, 6), other: round(pair.second.alone, 6)}
    return PairRates(
        new,
        tuple(tuple(known.get((row, column), 0.0) for column in new) for row in new),
        tuple(alone.get(kind, 0.0) for kind in new),
    )


def save(path: Path, tables: dict[str, PairRates]) -> None:
    """Write the tables; a reader sees the old file or the new one."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(tables), indent=2) + b"\n")
    beside.replace(path)
