"""A history survives its writers' ends, full disks and broken files, and its sums stay true."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select
from sqlalchemy.exc import OperationalError

from alnair.history.database import opening
from alnair.history.database.addresses import HistoryError
from alnair.history.database.rows import Gone
from alnair.history.database.tables import JOBS
from kit.job_history import is_true, job_row, life, opened, pod_row, put
from kit.stuck_writer import kill_in_the_middle

ENDED = {"started": 1010.0, "ended": 1110.0, "outcome": "completed"}


def write(engine: Engine, number: int, **more: Any) -> None:
    name = f"job{number}"
    put(engine, jobs=[job_row(name, name)], pods=[pod_row(f"p{number}", name, **ENDED)], **more)


def names(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.scalars(select(JOBS.c.name)))


def test_a_writer_that_is_killed_between_a_job_and_its_sums_leaves_neither(tmp_path: Path) -> None:
    kill_in_the_middle(str(tmp_path / "history.db"))
    engine = opened(tmp_path)
    assert names(engine) == {"job0", "job1"}
    assert is_true(engine)
    write(engine, 2)
    assert names(engine) == {"job0", "job1", "job2"}
    assert is_true(engine)


def test_a_full_disk_is_told_and_all_goes_on_when_there_is_room(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    write(engine, 0)
    most = [40]

    @event.listens_for(engine, "connect")
    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count={most[0]}")

    def fill() -> None:
        for number in range(1, 1000):
            write(engine, number, usages=[life(f"p{number}")])

    with pytest.raises(OperationalError) as full:
        fill()
    assert opening.reason(full.value) == (
        "database or disk is full: make room on its disk, or keep jobs for a shorter time"
    )
    there = names(engine)
    assert is_true(engine)
    most[0] = 1 << 20
    write(engine, 1000)
    assert names(engine) == there | {"job1000"}
    assert is_true(engine)


def test_a_damaged_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    for number in range(50):
        write(engine, number)
    engine.dispose()
    path = tmp_path / "history.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    for writes in (False, True):
        with pytest.raises(HistoryError, match=r"sqlite3 FILE \.recover"):
            opening.open_history(str(path), writes=writes)


def test_several_that_write_jobs_of_one_day_at_once_lose_nothing_of_its_sums(
    tmp_path: Path,
) -> None:
    engines = [opened(tmp_path) for _ in range(3)]

    def work(mine: int) -> None:
        for number in range(10):
            write(engines[mine], 100 * mine + number)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names(engines[0])) == 30
    assert is_true(engines[0])


def test_a_clock_that_was_set_back_makes_no_time_negative(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    put(engine, now=5000.0, looked=5000.0, jobs=[job_row()], pods=[pod_row(started=5000.0)])
    put(engine, now=100.0, looked=100.0, gone=[Gone("pod", 100.0, "deleted")])
    with engine.connect() as connection:
        (job,) = connection.execute(select(JOBS)).mappings()
    assert (job["completed"], job["duration"], job["gpu_seconds"]) == (100.0, 0.0, 0.0)
    assert is_true(engine)
