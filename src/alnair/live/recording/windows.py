"""Histories of a part of what is known: of records in files, or of one look at a cluster."""

import contextlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from alnair.history import history_file
from alnair.history.database.addresses import is_history
from alnair.history.history import History
from alnair.live.recording import record_file
from alnair.live.recording.history_from_record import build
from alnair.live.recording.recorded_cluster import Known
from alnair.model import durations


class SinceError(Exception):
    """The time from which to report cannot be used; says why and what to write."""


class NotRecordError(Exception):
    """A part is wanted of a file that can only be taken whole."""


class Window(msgspec.Struct, frozen=True):
    """Which part of a record.

    Attributes:
        begin: from when, seconds since the epoch.
        before_end: or so many seconds before its end. None of both: all of it.
        namespaces: only jobs of these; empty = all.
    """

    begin: float | None = None
    before_end: float | None = None
    namespaces: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return self == Window()


def window(since: str | None, namespaces: Iterable[str]) -> Window:
    """Return what a user means by `90s` or `7d` before the end, or by a time in ISO 8601.

    Raises:
        SinceError: It is neither.
    """
    only = frozenset(namespaces)
    if since is None:
        return Window(namespaces=only)
    with contextlib.suppress(ValueError):
        return Window(before_end=durations.seconds(since), namespaces=only)
    try:
        time = datetime.fromisoformat(since)
    except ValueError:
        raise SinceError(
            f"{since!r} is not a time: write 90s, 30m, 12h or 7d, or 2026-01-31T12:00:00Z"
        ) from None
    return Window((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp(), None, only)


def history_of(known: Known, part: Window, what: str) -> History:
    """Return the history of a part of what is known.

    Args:
        known: All that is known.
        part: Which part.
        what: It is known from; the history names it as its source.

    Raises:
        SinceError: The part begins after the end.
    """
    begin = part.begin if part.before_end is None else known.last - part.before_end
    end = datetime.fromtimestamp(known.last, UTC).isoformat(" ", "seconds")
    if begin is not None and begin >= known.last:
        raise SinceError(f"that is after the end, {end}")
    return build(known, begin=begin, namespaces=part.namespaces, source=f"{what}, until {end}")


def read(
    sources: Iterable[str], part: Window, database: Callable[[str], tuple[Known, str]]
) -> dict[str, History]:
    """Return the histories of records, databases and `alnair simulate`, by short names.

    Args:
        sources: Paths, or URLs of databases.
        part: Which part of them.
        database: Reads a database, and says what it is; its packages are not always there.

    Raises:
        HistoryError: A database cannot be read.
        HistoryFileError: A file is neither, or is damaged.
        NotRecordError: A part is wanted of what is no record.
        RecordError: A record is damaged.
        SinceError: The part begins after the end.
    """
    found: dict[str, History] = {}
    for source in sources:
        path = Path(source)
        run, number = path.name.split(".")[0], 1
        while run in found:
            number += 1
            run = f"{path.name.split('.')[0]}-{number}"
        if is_history(source):
            known, shown = database(source)
            found[run] = history_of(known, part, shown)
        elif _is_record(path):
            found[run] = history_of(record_file.load(path), part, f"record {path}")
        elif part.is_whole:
            found[run] = history_file.load(path)
        else:
            raise NotRecordError(
                f"{path} is no record of a cluster: leave --since and --namespace away"
            )
    return found


def check_no_record(name: str) -> None:
    """Refuse to write a history into a record of an earlier version.

    Raises:
        RecordError: It is one.
    """
    if "://" not in name and _is_record(Path(name)):
        raise record_file.RecordError(
            f"{name}: this is a record of an earlier version, which --history still reads: name"
            " another file, which becomes a database"
        )


def _is_record(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b'"alnair-record"' in file.readline(1000)
    except OSError:
        return False  # who reads it will say why
