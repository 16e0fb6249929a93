"""GPU hours of each day, by namespace and by user: so that no sum reads all jobs.

A job counts on the day (UTC) on which it ended; what lasts is in no day. Days are computed anew
from their jobs, in the transaction that changes a job: so they are true, whoever is killed.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final, Literal

from sqlalchemy import Connection, delete, func, insert, literal, select

from alnair.history.database.tables import DAYS, JOBS

Dimension = Literal["namespace", "user"]
DIMENSIONS: Final[tuple[Dimension, ...]] = ("namespace", "user")
#: Seconds.
DAY: Final = 86400.0
#: What is added up.
AMOUNTS: Final = ("gpu_seconds", "measured_gpu_seconds", "used_gpu_seconds")
#: Names in one statement.
_AT_ONCE: Final = 500

#: A day, a dimension, and a namespace or user.
Key = tuple[int, Dimension, str]


def day_of(time: float) -> int:
    """Return the day of a time: days since the epoch."""
    return int(time // DAY)


def sums() -> list[Any]:
    """Return what is selected of jobs: how many, and their amounts."""
    return [func.count(), *(func.sum(JOBS.c[name]) for name in AMOUNTS)]


def keys(connection: Connection, jobs: Collection[str]) -> set[Key]:
    """Return where jobs count as they are now, of up to some hundred uids."""
    rows = connection.execute(
        select(JOBS.c.completed, JOBS.c.namespace, JOBS.c.user).where(
            JOBS.c.uid.in_(jobs), JOBS.c.completed.is_not(None), JOBS.c.gpus > 0
        )
    )
    found: set[Key] = set()
    for completed, namespace, user in rows:
        day = day_of(completed)
        found.add((day, "namespace", namespace))
        found.add((day, "user", user))
    return found


def refresh(connection: Connection, changed: Iterable[Key]) -> None:
    """Compute anew what jobs of these days and names come to."""
    by_day: dict[tuple[int, Dimension], list[str]] = {}
    for day, dimension, name in sorted(changed):
        by_day.setdefault((day, dimension), []).append(name)
    for (day, dimension), names in by_day.items():
        for begin in range(0, len(names), _AT_ONCE):
            _refresh(connection, day, dimension, names[begin : begin + _AT_ONCE])


def rebuild(connection: Connection, since: float, until: float) -> None:
    """Compute anew all days from one time to another, seconds since the epoch.

    Who led before may have been of a version that knew no days, after another one had made them.
    """
    for day in range(day_of(since), day_of(until) + 1):
        for dimension in DIMENSIONS:
            _refresh(connection, day, dimension, None)


def _refresh(
    connection: Connection, day: int, dimension: Dimension, names: list[str] | None
) -> None:
    """Compute anew a day, of some names or of all."""
    name = JOBS.c[dimension]
    old = delete(DAYS).where(DAYS.c.day == day, DAYS.c.dimension == dimension)
    found = select(literal(day), literal(dimension), name, *sums()).where(
        JOBS.c.completed >= day * DAY, JOBS.c.completed < (day + 1) * DAY, JOBS.c.gpus > 0
    )
    if names is not None:
        old, found = old.where(DAYS.c.name.in_(names)), found.where(name.in_(names))
    connection.execute(old)
    columns = ("day", "dimension", "name", "jobs", *AMOUNTS)
    connection.execute(insert(DAYS).from_select(columns, found.group_by(name)))
