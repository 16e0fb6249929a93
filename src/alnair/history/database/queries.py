"""Questions to a history; each is a few statements, and none reads all of it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import Connection, RowMapping, Select, func, or_, select

from alnair.history.database.tables import FINDINGS, JOBS, NODES, PODS
from alnair.history.history import End

#: States of jobs, for people: how they ended, or what they do.
State = Literal[
    "running", "pending", "completed", "failed", "preempted", "evicted", "lost", "deleted"
]
STATES: Final[tuple[State, ...]] = (
    *("running", "pending", "completed", "failed", "preempted", "evicted", "lost", "deleted"),
)
#: Uids in one statement.
_AT_ONCE: Final = 500
_LISTED: Final = [column for column in JOBS.c if column.name != "labels"]


class Job(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A job, as it is listed; times are seconds since the epoch, `duration` is in seconds.

    Attributes:
        state: How it ended, or running or pending.
        gpu_util: Percent of its GPUs that it used, mean over what was measured; None if nothing
            was.
        gpu_hours: That its pods that ended held.
    """

    uid: str
    namespace: str
    api_version: str
    kind: str
    name: str
    series: str
    user: str
    scheduler: str
    state: State
    submitted: float
    started: float | None = None
    completed: float | None = None
    duration: float | None = None
    gpus: float = 0.0
    gpu_model: str = ""
    pods: int = 0
    gpu_hours: float = 0.0
    gpu_util: float | None = None
    gpu_memory_mib: float | None = None


class Pod(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A pod of a job.

    Attributes:
        bound: When it got its node.
        waited: What was said last of why it had none.
        usage: What its node's agent measured (`model.usage.PodUsage`).
    """

    uid: str
    name: str
    node: str
    gpus: float
    created: float
    bound: float | None = None
    waited: str = ""
    started: float | None = None
    ended: float | None = None
    outcome: End = ""
    usage: dict[str, Any] | None = None


class Details(msgspec.Struct, kw_only=True):
    """All that is known of a job."""

    job: Job
    labels: dict[str, str]
    pods: list[Pod]
    findings: dict[str, Any]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs.

    Attributes:
        namespace, user, kind, name, series, scheduler: Of the job; None = any. The kind in any
            case.
        state: What it does, or how it ended.
        since: Only jobs that lasted, or were submitted, after this; seconds since the epoch.
        until: Only jobs that were submitted before.
        limit: At most so many, the newest first.
    """

    namespace: str | None = None
    user: str | None = None
    kind: str | None = None
    name: str | None = None
    series: str | None = None
    scheduler: str | None = None
    state: State | None = None
    since: float | None = None
    until: float | None = None
    limit: int = 100


def jobs(connection: Connection, wanted: Filter) -> list[Job]:
    """Return the jobs that are wanted, the newest first."""
    statement = _filtered(select(*_LISTED), wanted)
    if wanted.kind is not None:
        statement = statement.where(JOBS.c.kind.in_(_spelled(connection, wanted.kind)))
    statement = statement.order_by(JOBS.c.submitted.desc(), JOBS.c.uid).limit(wanted.limit)
    return [_job(row) for row in connection.execute(statement).mappings()]


def _spelled(connection: Connection, kind: str) -> list[str]:
    """Return the kinds there are that are this one but for capitals: there are a few of them."""
    found: list[str] = []
    last: str | None = ""
    while last := connection.scalar(select(func.min(JOBS.c.kind)).where(JOBS.c.kind > last)):
        if last.lower() == kind.lower():
            found.append(last)
    return found


def _filtered(statement: "Select[Any]", wanted: Filter) -> "Select[Any]":
    for name in ("namespace", "user", "name", "series", "scheduler"):
        if (value := getattr(wanted, name)) is not None:
            statement = statement.where(JOBS.c[name] == value)
    if wanted.since is not None:
        statement = statement.where(
            or_(
                JOBS.c.submitted >= wanted.since,
                JOBS.c.completed >= wanted.since,
                JOBS.c.completed.is_(None),
            )
        )
    if wanted.until is not None:
        statement = statement.where(JOBS.c.submitted < wanted.until)
    if wanted.state in ("running", "pending"):
        started = JOBS.c.started
        is_it = started.is_not(None) if wanted.state == "running" else started.is_(None)
        return statement.where(JOBS.c.outcome == "", is_it)
    if wanted.state is not None:
        return statement.where(JOBS.c.outcome == wanted.state)
    return statement


def find(connection: Connection, namespace: str, kind: str, name: str) -> Details | None:
    """Return the newest job of this name; the kind in any case; None if there is none."""
    row = (
        connection.execute(
            select(JOBS)
            .where(
                JOBS.c.namespace == namespace,
                func.lower(JOBS.c.kind) == kind.lower(),
                JOBS.c.name == name,
            )
            .order_by(JOBS.c.submitted.desc())
            .limit(1)
        )
        .mappings()
        .first()
    )
    return None if row is None else details(connection, row)


def details(connection: Connection, row: RowMapping) -> Details:
    """Return all that is known of a job."""
    of_job = select(PODS).where(PODS.c.job == row["uid"]).order_by(PODS.c.created, PODS.c.name)
    found = connection.execute(of_job).mappings()
    names = Pod.__struct_fields__
    pods = [Pod(**{name: one[name] for name in names}) for one in found]
    findings = connection.execute(
        select(FINDINGS.c.kind, FINDINGS.c.document).where(FINDINGS.c.job == row["uid"])
    )
    return Details(
        job=_job(row),
        labels=row["labels"] or {},
        pods=pods,
        findings=dict(list(map(tuple, findings))),
    )


def findings(connection: Connection, jobs: Iterable[str], kind: str) -> dict[str, Any]:
    """Return uid → what was found last of some jobs, of one kind of finding; absent: nothing."""
    every, found = list(jobs), dict[str, Any]()
    for some in (every[at : at + _AT_ONCE] for at in range(0, len(every), _AT_ONCE)):
        wanted = select(FINDINGS.c.job, FINDINGS.c.document).where(
            FINDINGS.c.job.in_(some), FINDINGS.c.kind == kind
        )
        found.update(map(tuple, connection.execute(wanted)))
    return found


def _job(row: Mapping[Any, Any]) -> Job:
    measured = row["measured_gpu_seconds"]
    waiting: State = "pending" if row["started"] is None else "running"
    return Job(
        uid=row["uid"],
        namespace=row["namespace"],
        api_version="/".join(filter(None, (row["api_group"], row["api_version"]))),
        kind=row["kind"],
        name=row["name"],
        series=row["series"],
        user=row["user"],
        scheduler=row["scheduler"],
        state=row["outcome"] or waiting,
        submitted=row["submitted"],
        started=row["started"],
        completed=row["completed"],
        duration=row["duration"],
        gpus=row["gpus"],
        gpu_model=row["gpu_model"],
        pods=row["pods"],
        gpu_hours=row["gpu_seconds"] / 3600.0,
        gpu_util=100.0 * row["used_gpu_seconds"] / measured if measured else None,
        gpu_memory_mib=row["gpu_memory_mib"],
    )


def pods_of_time(
    connection: Connection, since: float | None
) -> Iterator[tuple[dict[str, Any], RowMapping]]:
    """Yield the record and the row, with its job's kind and name, of each pod after a time."""
    columns = [column for column in PODS.c if column.name != "usage"]
    statement = (
        select(*columns, JOBS.c.kind, JOBS.c.least, JOBS.c.name.label("job_name"))
        .join(JOBS, JOBS.c.uid == PODS.c.job)
        .where(PODS.c.record.is_not(None))
        .order_by(PODS.c.created)
    )
    if since is not None:
        statement = statement.where(or_(PODS.c.ended.is_(None), PODS.c.ended >= since))
    for row in connection.execution_options(yield_per=1000).execute(statement).mappings():
        yield row["record"], row


def nodes(connection: Connection) -> list[tuple[dict[str, Any], list[list[float | None]]]]:
    """Return the record of each node, and when it was ready."""
    rows = connection.execute(select(NODES.c.record, NODES.c.up).order_by(NODES.c.name))
    return [(record, up or []) for record, up in rows]
