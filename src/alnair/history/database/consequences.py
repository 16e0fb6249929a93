"""What follows for pods and jobs from what was written of them: computed anew, never added to."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import ColumnElement, Connection, bindparam, case, delete, func, or_, select, update

from alnair.history.database.tables import JOBS, PODS
from alnair.history.history import End

#: Uids in one statement.
_AT_ONCE: Final = 500
_WHOLE_PERCENT: Final = 100.0


def chunks(uids: Iterable[str]) -> Iterable[list[str]]:
    """Return uids in lists that a statement has room for."""
    every = list(uids)
    return (every[begin : begin + _AT_ONCE] for begin in range(0, len(every), _AT_ONCE))


def used_of(seconds: ColumnElement[float]) -> ColumnElement[float]:
    """What a pod would have used of GPUs in some seconds at 100 %.

    Its use is in percent of whole GPUs, also where it has a slice of one.
    """
    is_slice = PODS.c.gpus.between(0.0, 1.0) & (PODS.c.gpus > 0)
    return case((is_slice, seconds), else_=PODS.c.gpus * seconds)


def least(one: ColumnElement[float], other: ColumnElement[float]) -> ColumnElement[float]:
    """The smaller of two."""
    return case((one < other, one), else_=other)


def account(connection: Connection, uids: list[str]) -> None:
    """Compute what pods that have ended held and used."""
    measured = PODS.c.gpu_util.is_not(None)
    span = PODS.c.ended - PODS.c.started
    lived = case((span > 0, span), else_=0.0)
    held = PODS.c.gpus * lived
    share = func.coalesce(PODS.c.gpu_util, 0.0) / _WHOLE_PERCENT
    for some in chunks(uids):
        connection.execute(
            update(PODS)
            .where(PODS.c.uid.in_(some), PODS.c.ended.is_not(None))
            .values(
                gpu_seconds=held,
                measured_gpu_seconds=case((measured, held), else_=0.0),
                used_gpu_seconds=least(used_of(lived) * share, held),
            )
        )


def refresh(connection: Connection, jobs: list[str], now: float) -> None:
    """Make the rows of jobs true to their pods; a job without pods is none."""
    rows = connection.execute(
        select(
            PODS.c.job,
            func.count().label("pods"),
            func.min(PODS.c.created).label("created"),
            func.min(PODS.c.started).label("started"),
            func.max(PODS.c.ended).label("ended"),
            func.count(PODS.c.ended).label("closed"),
            func.sum(PODS.c.gpu_seconds).label("held"),
            func.sum(PODS.c.measured_gpu_seconds).label("measured"),
            func.sum(PODS.c.used_gpu_seconds).label("used"),
            func.max(PODS.c.gpu_memory_mib).label("memory"),
            func.max(PODS.c.gpu_model).label("model"),
        )
        .where(PODS.c.job.in_(jobs))
        .group_by(PODS.c.job)
    ).all()
    if empty := set(jobs) - {row.job for row in rows}:
        connection.execute(delete(JOBS).where(JOBS.c.uid.in_(empty)))
    if not rows:
        return
    over = [row.job for row in rows if row.closed == row.pods]
    outcomes = _outcomes(connection, over)
    gpus = _most_gpus(connection, [row.job for row in rows])
    created = bindparam("b_created", type_=JOBS.c.submitted.type)
    submitted = case(
        (or_(JOBS.c.submitted == 0, JOBS.c.submitted > created), created), else_=JOBS.c.submitted
    )
    values = []
    for row in rows:
        is_over = row.closed == row.pods
        values.append(
            {
                "b_uid": row.job,
                "b_created": row.created,
                "pods": row.pods,
                "started": row.started,
                "completed": row.ended if is_over else None,
                "duration": (
                    # By two clocks, or one that was set back, an end may be before a begin.
                    max(row.ended - row.started, 0.0)
                    if is_over and row.started is not None
                    else None
                ),
                "outcome": outcomes.get(row.job, "deleted") if is_over else "",
                "gpus": gpus.get(row.job, 0.0),
                "gpu_seconds": row.held,
                "measured_gpu_seconds": row.measured,
                "used_gpu_seconds": row.used,
                "wasted_gpu_seconds": max(row.measured - row.used, 0.0),
                "gpu_memory_mib": row.memory,
                "gpu_model": row.model,
                "changed": now,
            }
        )
    names = [name for name in values[0] if not name.startswith("b_")]
    connection.execute(
        update(JOBS)
        .where(JOBS.c.uid == bindparam("b_uid"))
        .values(submitted=submitted, **{name: bindparam(name) for name in names}),
        values,
    )


def _outcomes(connection: Connection, jobs: list[str]) -> dict[str, End]:
    """Return how jobs ended whose pods all did.

    What its pods did by themselves tells more than that they were taken away: completed, if none
    failed after that; failed, if one did; else how the last one was cut short.
    """
    last: dict[str, dict[End, float]] = {}
    for job, how, when in connection.execute(
        select(PODS.c.job, PODS.c.outcome, func.max(PODS.c.ended))
        .where(PODS.c.job.in_(jobs), PODS.c.outcome != "")
        .group_by(PODS.c.job, PODS.c.outcome)
    ):
        last.setdefault(job, {})[how] = when
    found: dict[str, End] = {}
    for job, ends in last.items():
        own: list[End] = [how for how in ("completed", "failed") if how in ends]
        found[job] = max(own or ends, key=ends.__getitem__)
    return found


def _most_gpus(connection: Connection, jobs: list[str]) -> dict[str, float]:
    """Return the most that pods of each job asked for at one time."""
    changes: dict[str, list[tuple[float, int, float]]] = {}
    for job, created, ended, gpus in connection.execute(
        select(PODS.c.job, PODS.c.created, PODS.c.ended, PODS.c.gpus).where(
            PODS.c.job.in_(jobs), PODS.c.gpus > 0
        )
    ):
        # At one moment, who goes goes first: he may be replaced by who comes.
        of_job = changes.setdefault(job, [])
        of_job.append((created, 1, gpus))
        if ended is not None:
            of_job.append((max(ended, created + 1.0), 0, -gpus))
    found: dict[str, float] = {}
    for job, steps in changes.items():
        most = total = 0.0
        for _, _, amount in sorted(steps):
            total += amount
            most = max(most, total)
        found[job] = most
    return found
