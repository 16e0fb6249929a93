"""Jobs of the controller's history as work that arrives again, on the nodes that it knows."""

from typing import Any

import msgspec
from sqlalchemy import Connection, and_, func, select

from alnair.history.database import facts, opening, queries
from alnair.history.database.addresses import HistoryError
from alnair.history.database.tables import JOBS, PODS
from alnair.model import names
from alnair.model.nodes import Gpu, Node
from alnair.model.plurals import counted
from alnair.sim.inputs.options import Found, InputOptions
from alnair.sim.inputs.pod_templates import PodStamp
from alnair.sim.jobs import Job
from alnair.traces.files import TraceFileError
from alnair.traces.job_table import object_name
from alnair.traces.openb import WHOLE, TracePod


class _NodeRecord(msgspec.Struct):
    """What the history has of a node."""

    name: str
    cpu_milli: int = 0
    memory: int = 0
    gpu_count: int = 0
    model: str = ""
    gpus: tuple[Gpu, ...] = ()


class _PodRecord(msgspec.Struct):
    """What a pod asked for."""

    cpu_milli: int = 0
    memory_mib: int = 0


def read(
    source: str,
    options: InputOptions,
    nodes: tuple[Node, ...],
    *,
    last: float | None = None,
) -> Found:
    """Return the jobs of a history that have ended or run, and its nodes.

    A job comes with as many pods as it had at one time, alike, and runs as long as it ran then; its
    utilisation is what was measured.

    Args:
        source: URL or path.
        options: How long jobs run that have not ended.
        nodes: Instead of the history's.
        last: Only jobs that came in so many seconds before the history's end.

    Raises:
        TraceFileError: It cannot be read, or has no nodes.
    """
    try:
        with opening.readable(source) as connection:
            begin = 0.0 if last is None else (_end(connection) or 0.0) - last
            of_time = and_(JOBS.c.started.is_not(None), JOBS.c.submitted >= begin)
            wanted = select(JOBS).where(of_time).order_by(JOBS.c.submitted)
            rows = [dict(row) for row in connection.execute(wanted).mappings()]
            shapes: dict[str, list[Any]] = {}
            for job, gpus, record in connection.execute(
                select(PODS.c.job, PODS.c.gpus, PODS.c.record)
                .join(JOBS, JOBS.c.uid == PODS.c.job)
                .where(of_time)
                .order_by(PODS.c.created, PODS.c.uid)
            ):
                shapes.setdefault(job, []).append((gpus, record))
            known = nodes or tuple(_node(record) for record, _ in queries.nodes(connection))
    except HistoryError as error:
        raise TraceFileError(f"--from-history: {error}") from error
    if not known:
        raise TraceFileError(
            f"--from-history {source}: it knows no nodes: name some with --nodes, such as 20x8xA100"
        )
    return _found(rows, shapes, options, known)


def _end(connection: Connection) -> float | None:
    """Return when the history ends: at the last look, or with its last job."""
    return facts.looked(connection) or connection.scalar(select(func.max(JOBS.c.submitted)))


def _found(
    rows: list[dict[str, Any]],
    shapes: dict[str, list[Any]],
    options: InputOptions,
    nodes: tuple[Node, ...],
) -> Found:
    stamp = PodStamp(options.profile, nodes)
    begin = min((row["submitted"] for row in rows), default=0.0)
    made: list[Job] = []
    lasting = 0
    for row in rows:
        duration = row["duration"]
        if duration is None:
            lasting += 1
            duration = options.default_duration
        pods = _pods(row, shapes.get(row["uid"], []))
        if duration is None or not pods:
            continue
        measured = row["measured_gpu_seconds"]
        job = Job(
            # A name may come again, and its uid not.
            name=object_name(f"{row['name'][:40]}-{row['uid'][:13]}"),
            user=row["user"],
            submitted=row["submitted"] - begin,
            pods=(),
            duration=duration,
            util=100.0 * row["used_gpu_seconds"] / measured if measured else 100.0,
            kind=row["series"],
        )
        made.append(stamp.job(job, options.namespace or row["namespace"], pods))
    notes = []
    if lasting:
        what = (
            "taken to run for --default-duration"
            if options.default_duration is not None
            else "left out"
        )
        notes.append(f"{counted(lasting, 'job has', 'jobs have')} not ended: {what}")
    return Found(format="history", jobs=made, nodes=nodes, begin=begin, notes=notes)


def _pods(row: dict[str, Any], shapes: list[Any]) -> list[TracePod]:
    """Return as many pods as a job had at one time: those that came again replaced others."""
    found: list[TracePod] = []
    left = row["gpus"]
    for gpus, record in shapes:
        asked = msgspec.convert(record or {}, _PodRecord)
        if row["gpus"] and (gpus > left + 1e-9 or not gpus):
            continue
        left -= gpus
        milli = WHOLE if gpus >= 1 else round(gpus * WHOLE)
        count = round(gpus) if gpus >= 1 else int(gpus > 0)
        found.append(TracePod("", asked.cpu_milli, asked.memory_mib, count, milli if count else 0))
        if not row["gpus"]:
            break
    return found


def _node(record: dict[str, Any]) -> Node:
    known = msgspec.convert(record, _NodeRecord)
    gpus = known.gpus or tuple(
        Gpu(f"{known.name}/{index}", index, known.model, 0) for index in range(known.gpu_count)
    )
    amounts = {"cpu": known.cpu_milli, "memory": known.memory, names.GPU: len(gpus), "pods": 250}
    labels = {names.GPU_MODEL_LABEL: known.model} if known.model else {}
    return Node(known.name, amounts, labels=labels, gpus=gpus)
