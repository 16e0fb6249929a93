"""Writes changes into a history: each call is a part of the caller's transaction.

Every statement may be repeated: it says what is true, and adds nothing to what is there.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    Text,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from alnair.history.database.rows import Changes, Gone, JobRow, NodeRow, PodRow, Position
from alnair.history.database.tables import FACTS, FINDINGS, JOBS, NODES, PODS, POSITIONS
from alnair.history.history import End
from alnair.model import usage
from alnair.model.usage import PodUsage

#: Uids in one statement.
_AT_ONCE: Final = 500
_LOOKED: Final = "looked"
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
        _put(connection, FACTS, "name", [{"name": _LOOKED, "value": changes.looked}])
    uids = {row.uid for row in changes.pods} | {one.uid for one in changes.usages}
    _account(connection, sorted(uids | {one.uid for one in changes.gone}))
    for some in _chunks(sorted(touched)):
        _refresh(connection, some, now)
    return {row.uid for row in changes.pods if row.job not in there}


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


def looked(connection: Connection) -> float | None:
    """Return when a controller looked at the cluster last."""
    return connection.scalar(select(FACTS.c.value).where(FACTS.c.name == _LOOKED))


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
    insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert
    statement = insert(table)
    new = {name: statement.excluded[name] for name in rows[0] if name not in (key, *also)}
    if table is PODS:
        # What was known stays known: the API server forgets, and answers may be old.
        for name in ("started", "ended", "gone"):
            new[name] = func.coalesce(PODS.c[name], new[name])
        for name in ("outcome", "node", "gpu_model"):
            new[name] = case((new[name] == "", PODS.c[name]), else_=new[name])
    if table is JOBS:
        new["submitted"] = case(
            (or_(JOBS.c.submitted == 0, new["submitted"] < JOBS.c.submitted), new["submitted"]),
            else_=JOBS.c.submitted,
        )
    connection.execute(statement.on_conflict_do_update(index_elements=[key, *also], set_=new), rows)


def _there(connection: Connection, jobs: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in _chunks(jobs):
        found.update(connection.scalars(select(JOBS.c.uid).where(JOBS.c.uid.in_(some))))
    return found


def _jobs_of(connection: Connection, uids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in _chunks(uids):
        found.update(connection.scalars(select(PODS.c.job).where(PODS.c.uid.in_(some)).distinct()))
    return found


def _chunks(uids: Iterable[str]) -> Iterable[list[str]]:
    every = list(uids)
    return (every[begin : begin + _AT_ONCE] for begin in range(0, len(every), _AT_ONCE))


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
    for some in _chunks(one.uid for one in usages):
        rows = connection.execute(
            select(PODS.c.uid, PODS.c.final, PODS.c.gpus).where(PODS.c.uid.in_(some))
        )
        known.update({uid: (final, gpus) for uid, final, gpus in rows})
    unseen = [one for one in usages if one.uid not in known]
    _put(connection, JOBS, "uid", [_job(job_of_unseen(one), now) for one in unseen])
    _put(connection, PODS, "uid", [_pod(_unseen(one)) for one in unseen])
    fresh = [one for one in usages if one.ended is not None or not known.get(one.uid, (False,))[0]]
    if fresh:
        connection.execute(_MEASURED, [_measured(one) for one in fresh])
    return _jobs_of(connection, [one.uid for one in fresh])


def _held(column: str) -> ColumnElement[float]:
    """What a pod that lasts has held or used, for as long as it was measured; else as it was."""
    seconds = bindparam(f"b_{column}", type_=PODS.c.gpus.type)
    return case((seconds.is_(None), PODS.c[column]), else_=PODS.c.gpus * seconds)


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
        used_gpu_seconds=_held("used_gpu_seconds"),
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


# --- what follows -----------------------------------------------------------------------------


def _account(connection: Connection, uids: list[str]) -> None:
    """Compute what pods that have ended held and used."""
    measured = PODS.c.gpu_util.is_not(None)
    lived = PODS.c.ended - PODS.c.started
    held = PODS.c.gpus * case((lived > 0, lived), else_=0.0)
    share = func.coalesce(PODS.c.gpu_util, 0.0) / _WHOLE_PERCENT
    for some in _chunks(uids):
        connection.execute(
            update(PODS)
            .where(PODS.c.uid.in_(some), PODS.c.ended.is_not(None))
            .values(
                gpu_seconds=held,
                measured_gpu_seconds=case((measured, held), else_=0.0),
                used_gpu_seconds=held * share,
            )
        )


def _refresh(connection: Connection, jobs: list[str], now: float) -> None:
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
                    row.ended - row.started if is_over and row.started is not None else None
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
