"""GPU hours of days are what a sum over all jobs says, however the jobs came to be as they are."""

import random
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, select, update

from alnair.history.database import daily, efficiency, migrating, opening, retention
from alnair.history.database.rows import Gone
from alnair.history.database.tables import JOBS
from alnair.history.database.writing import put_finding, take_over
from kit.job_history import DAY, is_true, job_row, kept_days, life, opened, plain_days, pod_row, put


def plain_shares(connection: Connection, by: daily.Dimension, since: float | None) -> Any:
    found: dict[str, list[float]] = {}
    for job in connection.execute(select(JOBS)).mappings():
        late = job["completed"] is None or since is None or job["completed"] >= since
        if late and job["gpus"]:
            sums = found.setdefault(job[by], [0, 0.0, 0.0, 0.0])
            for place, name in enumerate(daily.AMOUNTS, 1):
                sums[place] += job[name] / 3600
            sums[0] += 1
    return {name: pytest.approx(sums) for name, sums in found.items()}


def any_change(draw: random.Random) -> dict[str, Any]:
    """Something that may be told of one of a few jobs, whose users and ends may still change."""
    uid = f"job{draw.randrange(8)}"
    pod = f"{uid}-{draw.randrange(2)}"
    time = draw.uniform(0, 4 * DAY)
    job = job_row(
        uid, uid, namespace=f"team-{int(uid[3:]) % 3}", user=draw.choice(("ann", "ben", "cy"))
    )
    ended = draw.choice((None, time + draw.expovariate(1 / 3600)))
    row = pod_row(
        pod, uid, gpus=draw.choice((0.0, 0.5, 4.0)), started=time, ended=ended,
        outcome="" if ended is None else "completed",
    )  # fmt: skip
    return draw.choice(
        (
            {"jobs": [job], "pods": [row]},
            {"jobs": [job], "pods": [row], "usages": [life(pod, util=draw.uniform(0, 100))]},
            {"usages": [life(pod, started=time, ended=ended)]},
            {"gone": [Gone(pod, time + DAY, "deleted")]},
        )
    )


@pytest.mark.parametrize("seed", range(6))
def test_days_are_the_sums_of_their_jobs_after_any_changes(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    engine = opened(tmp_path)
    for number in range(60):
        put(engine, **any_change(draw))
        if number % 20 == 19:
            with engine.begin() as connection:
                put_finding(connection, "job1", "workload", {"v": 1}, 1.0)
                retention.remove(connection, draw.uniform(0, 2 * DAY))
    with engine.connect() as connection:
        found, wanted = kept_days(connection), plain_days(connection)
        assert found.keys() == wanted.keys()
        for key, sums in wanted.items():
            assert found[key] == pytest.approx(sums)
        for since in (None, 0.0, DAY, *(draw.uniform(0, 5 * DAY) for _ in range(20))):
            for by in daily.DIMENSIONS:
                shares = efficiency.shares(connection, by, since)
                told = {s.name: [s.jobs, s.held, s.measured, s.used] for s in shares}
                assert told == plain_shares(connection, by, since)


def test_a_job_whose_user_is_told_late_moves_to_that_user_and_one_that_goes_on_leaves_its_day(
    tmp_path: Path,
) -> None:
    engine = opened(tmp_path)
    ended = {"started": 0.0, "ended": 3600.0, "outcome": "completed"}
    put(engine, jobs=[job_row(user="red")], pods=[pod_row(**ended)])
    put(engine, jobs=[job_row(user="ann")])
    with engine.connect() as connection:
        assert {key[2] for key in kept_days(connection)} == {"red", "ann"}
        (day,) = efficiency.by_day(connection, "user", None)
    assert (day.day, day.name, day.jobs, day.held) == (0, "ann", 1, 1.0)
    put(engine, jobs=[job_row(user="ann")], pods=[pod_row("next", started=3600.0)])
    with engine.connect() as connection:
        assert kept_days(connection) == {}
        assert efficiency.by_day(connection, "user", None) == []


def test_a_history_of_before_gets_the_days_of_the_jobs_that_it_has(tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    engine = opening.open_history(path, writes=True)
    for number in range(30):
        end = number * 0.3 * DAY
        job, pod = f"j{number}", f"p{number}"
        put(
            engine,
            jobs=[job_row(job, job, namespace=f"team-{number % 4}")],
            pods=[pod_row(pod, job, started=end - 60.0, ended=end, outcome="completed")],
            usages=[life(pod)],
        )
    with engine.begin() as connection:
        command.downgrade(migrating.configuration(connection), "0001")
    engine.dispose()
    engine = opening.open_history(path, writes=True)
    with engine.connect() as connection:
        assert len(kept_days(connection)) > 30
    assert is_true(engine)


def test_who_takes_over_sets_right_what_another_version_wrote_meanwhile(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    now = 100 * DAY
    for number, end in enumerate((now - 5 * DAY, now - 3600.0)):
        job, pod = f"j{number}", f"p{number}"
        row = pod_row(pod, job, started=end - 60.0, ended=end, outcome="completed")
        put(engine, jobs=[job_row(job, job)], pods=[row])
    with engine.begin() as connection:
        # As one that knows no days.
        connection.execute(update(JOBS).values(user="bob", gpu_seconds=7.0))
    assert not is_true(engine)
    with engine.begin() as connection:
        take_over(connection, "cluster", now)
    assert is_true(engine)
    with engine.connect() as connection:
        assert {key[2] for key in kept_days(connection)} == {"bob", "red"}
