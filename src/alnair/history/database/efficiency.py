"""What GPUs were held for, and what of that was used: by namespace, by user and by job."""

from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, func, or_, select

from alnair.history.database.tables import JOBS, PODS

_HOUR = 3600.0
By = Literal["namespace", "user"]


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


def shares(connection: Connection, by: By, since: float | None) -> list[Share]:
    """Return the GPU hours of all jobs that lasted after a time; who wasted most comes first."""
    rows = connection.execute(
        select(
            JOBS.c[by],
            func.count(),
            func.sum(JOBS.c.gpu_seconds),
            func.sum(JOBS.c.measured_gpu_seconds),
            func.sum(JOBS.c.used_gpu_seconds),
        )
        .where(*_after(since), JOBS.c.gpus > 0)
        .group_by(JOBS.c[by])
    )
    found = [Share(name=row[0], jobs=row[1], **_hours(row[2:])) for row in rows]
    return sorted(found, key=lambda one: (-one.wasted, -one.held, one.name))


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
