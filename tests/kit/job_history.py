"""Builders of what is written into a history of jobs."""

from pathlib import Path
from typing import Any

from pytest import approx  # noqa: PT013
from sqlalchemy import Connection, Engine, select

from alnair.history.database import daily, opening, writing
from alnair.history.database.rows import Changes, JobRow, PodRow
from alnair.history.database.tables import DAYS, JOBS
from alnair.model import usage
from alnair.model.usage import Digest, PodUsage, UsedGpu

DAY = 86400.0


def opened(folder: Path) -> Engine:
    """A new history."""
    return opening.open_history(str(folder / "history.db"), writes=True)


def job_row(uid: str = "job", name: str = "train", **more: Any) -> JobRow:
    """A job of namespace `red`."""
    given = {"namespace": "red", "api_group": "batch", "api_version": "v1", "kind": "Job"}
    return JobRow(uid=uid, name=name, **{**given, "user": "ann", **more})


def pod_row(uid: str = "pod", job: str = "job", **more: Any) -> PodRow:
    """A pod with a GPU that was created at 1000 s."""
    given = {"namespace": "red", "name": uid, "gpus": 1.0, "created": 1000.0}
    return PodRow(uid=uid, job=job, **{**given, **more})


def life(uid: str = "pod", util: float = 40.0, **more: Any) -> PodUsage:
    """What an agent says of a pod that ran from 1010 s to 1110 s."""
    metrics = {
        usage.GPU_UTIL: Digest(util, min(2 * util, 100.0), 1.5 * util, 100.0),
        usage.GPU_MEMORY_MIB: Digest(1000.0, 2048.0, 2000.0, 100.0),
    }
    given = {"started": 1010.0, "ended": 1110.0, "metrics": metrics, "v": 1, "node": "n"}
    gpus = [UsedGpu("GPU-1", "T4", 16384, whole=True)]
    about = {"namespace": "red", "pod": uid, "gpus": gpus, "containers": {"main": metrics}}
    return PodUsage(uid=uid, **{**given, **about, **more})


def put(engine: Engine, now: float = 2000.0, **changes: Any) -> set[str]:
    """Write changes in one transaction."""
    with engine.begin() as connection:
        return writing.write(connection, Changes(**changes), now)


def plain_days(connection: Connection) -> dict[daily.Key, list[float]]:
    """What days shall say, by reading every job."""
    found: dict[daily.Key, list[float]] = {}
    for job in connection.execute(select(JOBS)).mappings():
        if job["completed"] is None or not job["gpus"]:
            continue
        for dimension in daily.DIMENSIONS:
            key = (int(job["completed"] // DAY), dimension, job[dimension])
            sums = found.setdefault(key, [0, 0.0, 0.0, 0.0])
            sums[0] += 1
            for place, name in enumerate(daily.AMOUNTS, 1):
                sums[place] += job[name]
    return found


def kept_days(connection: Connection) -> dict[daily.Key, list[float]]:
    """What days say."""
    return {(row[0], row[1], row[2]): list(row[3:]) for row in connection.execute(select(DAYS))}


def is_true(engine: Engine) -> bool:
    """Whether days are the sums of their jobs."""
    with engine.connect() as connection:
        wanted = plain_days(connection)
        return kept_days(connection) == {key: approx(sums) for key, sums in wanted.items()}
