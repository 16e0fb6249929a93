"""Files of measured pairs (`alnair.model.pair_rates`), which `alnair profile pair` writes.

All that is wrong with a file is said at once, each with its place.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from alnair.model.pair_rates import PairRates, PairTables, problems


class PairTableError(ValueError):
    """A file is no table of pairs: which, and why."""


def load(path: Path) -> dict[str, PairRates]:
    """Return the tables of a file by GPU model.

    Raises:
        PairTableError: It cannot be read, or is something else.
    """
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise PairTableError(f"{path}: cannot be read: {error.strerror or error}") from None


def parse(content: bytes, source: str) -> dict[str, PairRates]:
    """Return the tables that a file's content has.

    Args:
        content: JSON.
        source: where it is from, for messages.

    Raises:
        PairTableError: It is something else.
    """
    twice: list[str] = []
    try:
        raw = json.loads(content, object_pairs_hook=lambda pairs: _once(pairs, twice))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise PairTableError(f"{source}: {where}: this is no JSON: {error.msg}") from None
    except (UnicodeDecodeError, RecursionError):
        raise PairTableError(f"{source}: this is no JSON in UTF-8") from None
    try:
        tables = msgspec.convert(raw, dict[str, PairRates])
    except msgspec.ValidationError as error:
        raise PairTableError(
            f"{source}: no table of pairs: {error}; write"
            ' {"MODEL": {"kinds": ["a", "b"], "rates": [[1, 0.8], [0.7, 1]]}}'
        ) from None
    wrong = [f"{name!r} is there twice: keep one" for name in twice]
    wrong += problems(tables)
    if wrong:
        raise PairTableError("\n".join(f"{source}: {line}" for line in wrong))
    return tables


def save(path: Path, tables: PairTables) -> None:
    """Write the tables; a reader sees the old file or the new one."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(encode(tables))
    beside.replace(path)


def encode(tables: PairTables) -> bytes:
    """Return the tables as a file has them, a kind's row in a line."""
    parts = []
    for name, table in tables.items():
        fields = [f'    "kinds": {_text(table.kinds)}', f'    "rates": {_rows(table.rates)}']
        if table.alone is not None:
            fields.append(f'    "alone": {_text(table.alone)}')
        if table.spread is not None:
            fields.append(f'    "spread": {_rows(table.spread)}')
        parts.append(f"  {_text(name)}: {{\n" + ",\n".join(fields) + "\n  }")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _rows(rows: tuple[tuple[float, ...], ...]) -> str:
    return "[\n" + ",\n".join(f"      {_text(row)}" for row in rows) + "\n    ]"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _once(pairs: list[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice += sorted({name for name in names if names.count(name) > 1})
    return found
