"""What GPUs were held for, and what of that was used: by namespace, by user and by job."""

from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from alnair.history.database import daily
from alnair.history.database.tables import DAYS, JOBS, PODS

_HOUR = 3600.0
By = daily.Dimension


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """GPU hours of a namespace or user.

    Attributes:
        held: That its pods held.
        measured: The part of it whose use is known.
        used: Of the measured part.
        wasted: Measured and not used.
    """

    name: str
    jobs: int
    held: float
    measured: float
    used: float

    @property
    def wasted(self) -> float:
        """GPU hours that were held, and that nobody used."""
        return max(self.measured - self.used, 0.0)


class JobShare(Share, frozen=True, kw_only=True):
    """The same of a job; `pods` are what agents measured of some of its pods."""

    uid: str
    namespace: str
    api_version: str
    kind: str
    series: str
    user: str
    usages: list[dict[str, Any]] = []


class DayShare(Share, frozen=True, kw_only=True):
    """The same of the jobs that ended on a day (UTC, days since the epoch)."""

    day: int


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Which figures are wanted.

    Attributes:
        by: Whose GPU hours are added up.
        since: Only jobs that lasted after this, in seconds since the epoch; None: all.
        worst: So many of the jobs that wasted most.
        namespace: Only the worst jobs of this one; None: of all.
    """

    by: By
    since: float | None = None
    worst: int = 10
    namespace: str | None = None


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """What GPUs were held for: who wasted most comes first; days are in order."""

    shares: list[Share]
    days: list[DayShare]
    jobs: list[JobShare]


def efficiency(connection: Connection, wanted: Request) -> Efficiency:
    """Return all figures that a request wants."""
    return Efficiency(
        shares=shares(connection, wanted.by, wanted.since),
        days=by_day(connection, wanted.by, wanted.since),
        jobs=worst(connection, wanted.since, wanted.worst, wanted.namespace),
    )


def shares(connection: Connection, by: By, since: float | None) -> list[Share]:
    """Return the GPU hours of all jobs that lasted after a time; who wasted most comes first."""
    whole = select(DAYS.c.name, *(func.sum(DAYS.c[name]) for name in ("jobs", *daily.AMOUNTS)))
    whole = whole.where(DAYS.c.dimension == by)
    parts = [_of_jobs(by, JOBS.c.completed.is_(None))]
    if since is not None:
        # Of the day on which it begins, only those that ended later.
        first = daily.day_of(since)
        whole = whole.where(DAYS.c.day > first)
        rest = JOBS.c.completed < (first + 1) * daily.DAY
        parts.append(_of_jobs(by, and_(JOBS.c.completed >= since, rest)))
    sums: dict[str, list[float]] = {}
    for statement in (whole.group_by(DAYS.c.name), *parts):
        for name, *amounts in connection.execute(statement):
            before = sums.get(name, (0, 0.0, 0.0, 0.0))
            sums[name] = [a + b for a, b in zip(before, amounts, strict=True)]
    found = [
        Share(name=name, jobs=int(count), **_hours(seconds))
        for name, (count, *seconds) in sums.items()
    ]
    return sorted(found, key=lambda one: (-one.wasted, -one.held, one.name))


def _of_jobs(by: By, which: ColumnElement[bool]) -> Select[Any]:
    return select(JOBS.c[by], *daily.sums()).where(which, JOBS.c.gpus > 0).group_by(JOBS.c[by])


def by_day(connection: Connection, by: By, since: float | None) -> list[DayShare]:
    """Return the GPU hours of each day and name, in order, from the day of a time on."""
    statement = select(DAYS).where(DAYS.c.dimension == by).order_by(DAYS.c.day, DAYS.c.name)
    if since is not None:
        statement = statement.where(DAYS.c.day >= daily.day_of(since))
    return [
        DayShare(
            day=row["day"],
            name=row["name"],
            jobs=row["jobs"],
            **_hours(row[name] for name in daily.AMOUNTS),
        )
        for row in connection.execute(statement).mappings()
    ]


def _hours(seconds: Any) -> dict[str, float]:
    held, measured, used = seconds
    return {"held": held / _HOUR, "measured": measured / _HOUR, "used": used / _HOUR}


def _after(since: float | None) -> list[Any]:
    if since is None:
        return []
    return [or_(JOBS.c.completed >= since, JOBS.c.completed.is_(None))]


def worst(
    connection: Connection, since: float | None, limit: int, namespace: str | None = None
) -> list[JobShare]:
    """Return the jobs that wasted most, with what was measured of up to eight pods of each."""
    wasted = JOBS.c.wasted_gpu_seconds
    statement = select(JOBS).where(*_after(since), wasted > 0)
    if namespace is not None:
        statement = statement.where(JOBS.c.namespace == namespace)
    rows = connection.execute(statement.order_by(wasted.desc(), JOBS.c.uid).limit(limit)).mappings()
    found = []
    for row in rows.all():
        usages = connection.scalars(
            select(PODS.c.usage)
            .where(PODS.c.job == row["uid"], PODS.c.usage.is_not(None))
            .order_by(PODS.c.gpu_seconds.desc())
            .limit(8)
        )
        keys = ("gpu_seconds", "measured_gpu_seconds", "used_gpu_seconds")
        found.append(
            JobShare(
                name=row["name"],
                jobs=1,
                **_hours(row[key] for key in keys),
                uid=row["uid"],
                namespace=row["namespace"],
                api_version="/".join(filter(None, (row["api_group"], row["api_version"]))),
                kind=row["kind"],
                series=row["series"],
                user=row["user"],
                usages=list(usages),
            )
        )
    return found
