"""What ended long ago is forgotten, and nothing else."""

from pathlib import Path

from sqlalchemy import func, select

from alnair.history.database import retention
from alnair.history.database.rows import NodeRow
from alnair.history.database.tables import FINDINGS, JOBS, NODES, PODS
from kit.job_history import job_row, opened, pod_row, put


def test_jobs_that_ended_before_go_with_their_pods_and_what_lasts_stays(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    rows = [job_row(name, name) for name in ("old", "new", "lasting")]
    pods = [
        pod_row("a", "old", ended=1500.0, outcome="completed"),
        pod_row("b", "new", ended=2500.0, outcome="completed"),
        pod_row("c", "lasting"),
    ]
    put(engine, jobs=rows, pods=pods)
    for name, ready, since in (("gone", True, 1.0), ("gone", False, 9.0), ("here", True, 1.0)):
        put(engine, nodes=[NodeRow(name=name, ready=ready, since=since, record={"name": name})])
    with engine.begin() as connection:
        assert retention.remove(connection, before=2000.0) == 1
        assert retention.remove(connection, before=2000.0) == 0
        assert set(connection.scalars(select(JOBS.c.name))) == {"new", "lasting"}
        assert set(connection.scalars(select(PODS.c.uid))) == {"b", "c"}
        assert list(connection.scalars(select(NODES.c.name))) == ["here"]
        assert connection.scalar(select(func.count()).select_from(FINDINGS)) == 0
