"""The `gpu-assignment` annotation, read strictly."""

import json
from datetime import datetime
from typing import Any, Final

import msgspec

from alnair.checker.objects.amounts import UnreadableError

_FIELDS: Final = {"uuid": str, "index": int, "memory_mib": int, "compute": int, "whole": bool}


class Part(msgspec.Struct, frozen=True):
    """A container's part of one GPU."""

    container: str
    uuid: str
    index: int
    memory_mib: int
    compute: int
    whole: bool


def parts_of(text: str) -> tuple[Part, ...]:
    """Read an assignment.

    Raises:
        UnreadableError: It is not what the contract says.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"it is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("v") != 1:
        raise UnreadableError("it is no document of version 1")
    try:
        written = datetime.fromisoformat(document.get("t") or "")
    except (TypeError, ValueError) as error:
        raise UnreadableError(f"its time t is no RFC 3339 time: {document.get('t')!r}") from error
    if written.tzinfo is None:
        raise UnreadableError("its time t has no zone")
    listed = document.get("containers")
    if not isinstance(listed, dict):
        raise UnreadableError("it has no map of containers")
    return tuple(
        _part(container, entry)
        for container, entries in listed.items()
        for entry in _entries(container, entries)
    )


def _entries(container: str, entries: object) -> list[Any]:
    if not isinstance(entries, list) or not entries:
        raise UnreadableError(f"container {container!r} has no list of GPUs")
    return entries


def _part(container: str, entry: object) -> Part:
    if not isinstance(entry, dict):
        raise UnreadableError(f"container {container!r}: {entry!r} is no GPU")
    for field, kind in _FIELDS.items():
        # bool is an int to Python, but not in the contract.
        if type(entry.get(field)) is not kind:
            raise UnreadableError(f"container {container!r}: {field} is {entry.get(field)!r}")
    if entry["memory_mib"] < 0 or entry["compute"] < 0:
        raise UnreadableError(f"container {container!r}: an amount is negative")
    return Part(container, **{field: entry[field] for field in _FIELDS})
