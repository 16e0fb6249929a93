"""Writes changes into a history: each call is a part of the caller's transaction.

Every statement may be repeated: it says what is true, and adds nothing to what is there.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    Text,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
    update,
)

from alnair.history.database import consequences, daily, facts
from alnair.history.database.consequences import chunks, least, used_of
from alnair.history.database.inserts import insert
from alnair.history.database.rows import Changes, Gone, JobRow, NodeRow, PodRow, Position
from alnair.history.database.tables import FINDINGS, JOBS, NODES, PODS, POSITIONS
from alnair.model import usage
from alnair.model.usage import PodUsage

#: Of PostgreSQL's advisory lock of those who write; any number that others do not use.
_LOCK: Final = 0x616C6E6169720002
#: The kind of finding that agents make of pods.
WORKLOAD: Final = "workload"
#: Seconds before a writer begins in which another version may have written.
_RECENT: Final = 7 * daily.DAY
_WHOLE_PERCENT: Final = 100.0


def write(connection: Connection, changes: Changes, now: float) -> set[str]:
    """Write changes, and what follows from them for the jobs.

    Returns the uids of pods that were not written, as the history does not know their jobs (any
    more): write them again with these.

    Args:
        connection: In a transaction, which the caller commits.
        changes: What is known now.
        now: Seconds since the epoch.
    """
    one_at_a_time(connection)
    concerned = _concerned(connection, changes)
    days = _days_of(connection, concerned)
    _put(connection, JOBS, "uid", [_job(row, now) for row in changes.jobs])
    touched = _jobs_of(connection, [row.uid for row in changes.pods])
    there = _there(connection, {row.job for row in changes.pods})
    _put(connection, PODS, "uid", [_pod(row) for row in changes.pods if row.job in there])
    touched |= there
    touched |= _usages(connection, changes.usages, now)
    touched |= _gone(connection, changes.gone)
    _nodes(connection, changes.nodes)
    if changes.position is not None:
        _put(connection, POSITIONS, "node", [{**_plain(changes.position), "changed": now}])
    if changes.looked is not None:
        facts.put_looked(connection, changes.looked)
    if changes.decided is not None:
        facts.put_decided(connection, *changes.decided, now)
    uids = {row.uid for row in changes.pods} | {one.uid for one in changes.usages}
    consequences.account(connection, sorted(uids | {one.uid for one in changes.gone}))
    for some in chunks(sorted(touched)):
        consequences.refresh(connection, some, now)
    daily.refresh(connection, days | _days_of(connection, concerned))
    return {row.uid for row in changes.pods if row.job not in there}


def take_over(connection: Connection, cluster: str | None, now: float) -> None:
    """Begin to write, after somebody else or for the first time.

    Args:
        connection: In a transaction.
        cluster: Which it is, see `facts.claim`; None if that cannot be told.
        now: Seconds since the epoch.

    Raises:
        HistoryError: The history is of another cluster.
    """
    one_at_a_time(connection)
    if cluster is not None:
        facts.claim(connection, cluster)
    daily.rebuild(connection, now - _RECENT, now)


def one_at_a_time(connection: Connection) -> None:
    """Wait until nobody else writes: what is computed anew must not miss what another one adds.

    In SQLite the transaction itself is the lock.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))


def _concerned(connection: Connection, changes: Changes) -> list[str]:
    """Return the uids of all jobs that changes may change."""
    pods = {row.uid for row in changes.pods} | {one.uid for one in changes.usages}
    found = _jobs_of(connection, pods | {one.uid for one in changes.gone})
    found.update(row.uid for row in changes.jobs)
    found.update(row.job for row in changes.pods)
    found.update(job_of_unseen(one).uid for one in changes.usages)
    return sorted(found)


def _days_of(connection: Connection, jobs: list[str]) -> set[daily.Key]:
    found: set[daily.Key] = set()
    for some in chunks(jobs):
        found |= daily.keys(connection, some)
    return found


def put_finding(
    connection: Connection, job: str, kind: str, document: Mapping[str, Any], now: float
) -> bool:
    """Write what analysis found of a job; returns whether the job is there."""
    done = connection.execute(update(JOBS).where(JOBS.c.uid == job).values(changed=now))
    if not done.rowcount:
        return False
    row = {"job": job, "kind": kind, "changed": now, "document": dict(document)}
    _put(connection, FINDINGS, "job", [row], also=("kind",))
    return True


def position(connection: Connection, node: str) -> Position:
    """Return how far the outbox of a node was read."""
    found = connection.execute(
        select(POSITIONS.c.stream, POSITIONS.c.seq).where(POSITIONS.c.node == node)
    ).first()
    return Position(node, *found) if found else Position(node)


def open_pods(connection: Connection) -> dict[str, str]:
    """Return the pods that are there, as far as the history knows: uid to their job's uid."""
    rows = connection.execute(select(PODS.c.uid, PODS.c.job).where(PODS.c.gone.is_(None)))
    return {row[0]: row[1] for row in rows}


# --- rows -------------------------------------------------------------------------------------


def _plain(row: object) -> dict[str, Any]:
    return msgspec.structs.asdict(row)  # type: ignore[arg-type]


def _job(row: JobRow, now: float) -> dict[str, Any]:
    return {**_plain(row), "changed": now}


def _pod(row: PodRow) -> dict[str, Any]:
    return _plain(row)


def _put(
    connection: Connection,
    table: Table,
    key: str,
    rows: list[dict[str, Any]],
    also: tuple[str, ...] = (),
) -> None:
    """Insert rows, or make those that are there equal to them."""
    if not rows:
        return
    statement = insert(connection, table)
    new: dict[str, ColumnElement[Any]] = {
        name: statement.excluded[name] for name in rows[0] if name not in (key, *also)
    }
    if table is PODS:
        # What was known stays known: the API server forgets, and answers may be old.
        for name in ("bound", "started", "ended", "gone"):
            new[name] = func.coalesce(PODS.c[name], new[name])
        for name in ("outcome", "node", "gpu_model", "waited"):
            new[name] = case((new[name] == "", PODS.c[name]), else_=new[name])
    if table is JOBS:
        new["submitted"] = case(
            (or_(JOBS.c.submitted == 0, new["submitted"] < JOBS.c.submitted), new["submitted"]),
            else_=JOBS.c.submitted,
        )
        new["least"] = case((new["least"] == 0, JOBS.c.least), else_=new["least"])
    connection.execute(statement.on_conflict_do_update(index_elements=[key, *also], set_=new), rows)


def _add(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows; what is there already is known better."""
    if rows:
        connection.execute(insert(connection, table).on_conflict_do_nothing(), rows)


def _there(connection: Connection, jobs: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in chunks(jobs):
        found.update(connection.scalars(select(JOBS.c.uid).where(JOBS.c.uid.in_(some))))
    return found


def _jobs_of(connection: Connection, uids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in chunks(uids):
        found.update(connection.scalars(select(PODS.c.job).where(PODS.c.uid.in_(some)).distinct()))
    return found


def _gone(connection: Connection, gone: list[Gone]) -> set[str]:
    if not gone:
        return set()
    ended = func.coalesce(PODS.c.ended, bindparam("b_when"))
    outcome = case((PODS.c.outcome == "", bindparam("b_outcome")), else_=PODS.c.outcome)
    connection.execute(
        update(PODS)
        .where(PODS.c.uid == bindparam("b_uid"))
        .values(gone=func.coalesce(PODS.c.gone, bindparam("b_when")), ended=ended, outcome=outcome),
        [{"b_uid": one.uid, "b_when": one.when, "b_outcome": one.outcome} for one in gone],
    )
    return _jobs_of(connection, [one.uid for one in gone])


def _nodes(connection: Connection, nodes: list[NodeRow]) -> None:
    for node in nodes:
        up = connection.scalar(select(NODES.c.up).where(NODES.c.name == node.name)) or []
        is_up = bool(up) and up[-1][1] is None
        if node.ready and not is_up:
            up = [*up, [max(node.since, up[-1][1]) if up else node.since, None]]
        elif not node.ready and is_up:
            up = [*up[:-1], [up[-1][0], max(node.since, up[-1][0])]]
        _put(connection, NODES, "name", [{"name": node.name, "record": node.record, "up": up}])


# --- what agents measured ---------------------------------------------------------------------


def _usages(connection: Connection, usages: list[PodUsage], now: float) -> set[str]:
    """Write usages; of pods that nobody saw, their agent's word is all there is."""
    if not usages:
        return set()
    known: dict[str, tuple[bool, float]] = {}
    for some in chunks(one.uid for one in usages):
        rows = connection.execute(
            select(PODS.c.uid, PODS.c.final, PODS.c.gpus).where(PODS.c.uid.in_(some))
        )
        known.update({uid: (final, gpus) for uid, final, gpus in rows})
    unseen = [one for one in usages if one.uid not in known]
    _add(connection, JOBS, [_job(job_of_unseen(one), now) for one in unseen])
    _put(connection, PODS, "uid", [_pod(_unseen(one)) for one in unseen])
    fresh = [one for one in usages if one.ended is not None or not known.get(one.uid, (False,))[0]]
    if fresh:
        connection.execute(_MEASURED, [_measured(one) for one in fresh])
        _workloads(connection, fresh, now)
    return _jobs_of(connection, [one.uid for one in fresh])


def _workloads(connection: Connection, usages: list[PodUsage], now: float) -> None:
    """Write what agents found that jobs do; of several pods of one, what was found last."""
    told = {one.uid: one for one in usages if one.workload is not None}
    rows: dict[str, tuple[str, dict[str, Any]]] = {}
    for some in chunks(told):
        for uid, job in connection.execute(
            select(PODS.c.uid, PODS.c.job).where(PODS.c.uid.in_(some))
        ):
            one = told[uid]
            document = {**msgspec.to_builtins(one.workload), "pod": one.pod}
            rows[job] = max(rows.get(job, ("", {})), (document["t"], document), key=itemgetter(0))
    found = [
        {"job": job, "kind": WORKLOAD, "changed": now, "document": document}
        for job, (_, document) in rows.items()
    ]
    _put(connection, FINDINGS, "job", found, also=("kind",))


def _number(name: str) -> ColumnElement[float]:
    """A parameter that may be None: PostgreSQL cannot tell by itself of what type that is."""
    return cast(bindparam(name, type_=PODS.c.gpus.type), PODS.c.gpus.type)


def _held(column: str) -> ColumnElement[float]:
    """What a pod that lasts has held or used, for as long as it was measured; else as it was."""
    seconds = _number(f"b_{column}")
    return case((seconds.is_(None), PODS.c[column]), else_=PODS.c.gpus * seconds)


def _used() -> ColumnElement[float]:
    """The same of what it has used."""
    used = _number("b_used_gpu_seconds")
    held = PODS.c.gpus * _number("b_gpu_seconds")
    return case((used.is_(None), PODS.c.used_gpu_seconds), else_=least(used_of(used), held))


_MEASURED: Final = (
    update(PODS)
    .where(PODS.c.uid == bindparam("b_uid"))
    .values(
        usage=bindparam("usage"),
        final=bindparam("final"),
        gpu_util=bindparam("gpu_util"),
        gpu_memory_mib=bindparam("gpu_memory_mib"),
        started=func.coalesce(PODS.c.started, bindparam("b_started", type_=PODS.c.started.type)),
        node=case((PODS.c.node == "", bindparam("b_node", type_=Text)), else_=PODS.c.node),
        gpu_model=case(
            (bindparam("b_model", type_=Text) != "", bindparam("b_model", type_=Text)),
            else_=PODS.c.gpu_model,
        ),
        gpu_seconds=_held("gpu_seconds"),
        measured_gpu_seconds=_held("measured_gpu_seconds"),
        used_gpu_seconds=_used(),
    )
)


def _measured(one: PodUsage) -> dict[str, Any]:
    util = one.metrics.get(usage.GPU_UTIL)
    memory = one.metrics.get(usage.GPU_MEMORY_MIB)
    seconds = None if util is None else util.seconds
    return {
        "b_uid": one.uid,
        "usage": msgspec.to_builtins(one),
        "final": one.ended is not None,
        "gpu_util": util.mean if util else None,
        "gpu_memory_mib": memory.max if memory else None,
        "b_started": one.started,
        "b_node": one.node,
        "b_model": one.gpus[0].model if one.gpus else "",
        "b_gpu_seconds": seconds,
        "b_measured_gpu_seconds": seconds,
        "b_used_gpu_seconds": util.seconds * util.mean / _WHOLE_PERCENT if util else None,
    }


def job_of_unseen(one: PodUsage) -> JobRow:
    """Return the job of a pod that only its agent saw: what controls it, or the pod itself."""
    if (owner := one.controller) is not None:
        group, _, version = owner.api_version.rpartition("/")
        return JobRow(
            uid=owner.uid,
            namespace=one.namespace,
            api_group=group,
            api_version=version,
            kind=owner.kind,
            name=owner.name,
            series=f"{owner.kind}/{owner.name}",
            user=one.namespace,
            submitted=one.started,
        )
    return JobRow(
        uid=one.uid,
        namespace=one.namespace,
        api_version="v1",
        kind="Pod",
        name=one.pod,
        series=f"Pod/{one.pod}",
        user=one.namespace,
        submitted=one.started,
    )


def _unseen(one: PodUsage) -> PodRow:
    return PodRow(
        uid=one.uid,
        job=job_of_unseen(one).uid,
        namespace=one.namespace,
        name=one.pod,
        node=one.node,
        gpus=float(sum(1 for gpu in one.gpus if gpu.whole)),
        gpu_model=one.gpus[0].model if one.gpus else "",
        created=one.started,
        started=one.started,
        ended=one.ended,
        gone=one.ended,
        outcome="" if one.ended is None else "deleted",
    )
