"""The history in a real PostgreSQL gives the same answers as in SQLite, whoever writes at once."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import MetaData, create_engine, func, insert, select

from alnair.history.database import efficiency, facts, migrations, opening, queries, retention
from alnair.history.database.addresses import HistoryError
from alnair.history.database.filters import filter_of
from alnair.history.database.queries import Filter
from alnair.history.database.rows import Gone, NodeRow, Position
from alnair.history.database.tables import JOBS, METADATA, PODS
from alnair.live.recording import known_from_database
from alnair.model import usage
from alnair.model.usage import Digest
from kit.job_history import is_true, job_row, life, pod_row, put
from kit.postgres import Postgres
from kit.stuck_writer import kill_in_the_middle


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    server = Postgres()
    server.start()
    yield server
    server.close()


@pytest.fixture
def history(server: Postgres, request: pytest.FixtureRequest) -> str:
    """The address of an empty database."""
    name = f"h{abs(hash(request.node.name))}"
    server.make_database(name)
    return server.url_of(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty history of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "history.db")
    return str(request.getfixturevalue("history"))


def test_migrations_make_the_tables_that_the_code_knows(history: str) -> None:
    engine = opening.open_history(history, writes=True)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def test_many_may_open_it_at_once(history: str) -> None:
    failed: list[BaseException] = []
    begin = threading.Barrier(6)

    def work() -> None:
        begin.wait()
        try:
            opening.open_history(history, writes=True).dispose()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_who_reads_migrates_nothing(history: str) -> None:
    with pytest.raises(HistoryError, match="this is no history of Alnair"):
        opening.open_history(history)


def test_a_server_that_is_away_is_said_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="it cannot be opened") as refused:
        opening.open_history(f"postgresql://ann:secret@/x?host={tmp_path}")
    assert "secret" not in str(refused.value)


def test_what_pods_without_gpus_used_is_kept_beside_the_others(either: str) -> None:
    engine = opening.open_history(either, writes=True)
    memory = {usage.MEMORY_MIB: Digest(10.0, 20.0, 15.0, 100.0)}
    put(engine, usages=[life("cpus", metrics=memory, gpus=[]), life()])
    put(engine, usages=[life("idle", metrics={}, ended=None)])
    with engine.connect() as connection:
        found = connection.execute(select(PODS.c.uid, PODS.c.gpu_util, PODS.c.used_gpu_seconds))
        assert {uid: tuple(of) for uid, *of in found} == {
            "cpus": (None, 0.0),
            "pod": (40.0, 40.0),
            "idle": (None, 0.0),
        }
    engine.dispose()


def test_what_is_asked_has_the_same_answers_of_both_databases(either: str) -> None:
    engine = opening.open_history(either, writes=True)
    ran = {"started": 1010.0, "ended": 8210.0, "outcome": "completed", "node": "n"}
    record = {"uid": "pod", "namespace": "red", "name": "pod", "job": "x", "created": 1000.0,
              "phase": "completed", "ended": 8210.0, "node": "n", "whole": 1}  # fmt: skip
    for _ in range(2):  # what is written twice is there once
        put(
            engine,
            jobs=[job_row(labels={"team": "red"}), job_row("b", "other", namespace="blue")],
            pods=[pod_row(record=record, **ran), pod_row("c", "b")],
            nodes=[NodeRow(name="n", ready=True, since=10.0, record={"name": "n", "gpu_count": 1})],
            usages=[life(util=25.0), life("unseen")],
            gone=[Gone("c", 3000.0, "preempted")],
            position=Position("n", "s", 2),
            looked=9000.0,
        )
    with opening.readable(either) as connection:
        found = queries.jobs(connection, filter_of({}, 9000.0))
        assert {job.name: (job.state, job.pods, job.gpu_util) for job in found} == {
            "train": ("completed", 1, 25.0),
            "other": ("preempted", 1, None),
            "unseen": ("deleted", 1, 40.0),
        }
        details = queries.find(connection, "red", "job", "train")
        assert details is not None
        assert (details.labels, details.job.duration) == ({"team": "red"}, 7200.0)
        red, blue = efficiency.shares(connection, "namespace", None)
        assert (red.name, red.wasted) == ("red", pytest.approx(1.5 + 60 / 3600))
        assert (blue.name, blue.measured) == ("blue", 0.0)
        assert [job.name for job in efficiency.worst(connection, 2000.0, 5)] == ["train"]
    known = known_from_database.load(either)
    assert known.pods["pod"].utils == [(1010.0, 25.0)]
    assert known.nodes["n"].up == [(10.0, None)]
    with engine.begin() as connection:
        assert retention.remove(connection, 5000.0) == 2
        assert retention.remove(connection, 5000.0) == 0
        assert list(connection.scalars(select(JOBS.c.name))) == ["train"]
        assert connection.scalar(select(func.count()).select_from(PODS)) == 1
    engine.dispose()


def test_those_who_write_at_once_lose_nothing(either: str) -> None:
    begin = threading.Barrier(4)
    failed: list[BaseException] = []

    def work(writer: int) -> None:
        begin.wait()
        try:
            engine = opening.open_history(either, writes=True)
            try:
                for number in range(20):
                    job = f"{writer}-{number}"
                    row = {"jobs": [job_row(job, job)], "pods": [pod_row(job, job)]}
                    put(engine, **row, usages=[life(job)])
            finally:
                engine.dispose()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work, args=[writer]) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with opening.readable(either) as connection:
        assert len(queries.jobs(connection, Filter(limit=1000))) == 80


def test_sums_of_days_are_true_whoever_writes_at_once_or_is_killed(either: str) -> None:
    kill_in_the_middle(either)
    engines = [opening.open_history(either, writes=True) for _ in range(3)]

    def work(mine: int) -> None:
        for number in range(8):
            name = f"own-{mine}-{number}"
            pod = pod_row(f"p{name}", name, started=1010.0, ended=1110.0, outcome="completed")
            put(engines[mine], jobs=[job_row(name, name)], pods=[pod])

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engines[0].connect() as connection:
        (share,) = efficiency.shares(connection, "namespace", None)
    # Two of the one that was killed, and not its third.
    assert share.jobs == 2 + 3 * 8
    assert is_true(engines[0])
    with engines[0].begin() as connection:
        facts.put_decided(connection, 10, 1.0, 60.0)
        facts.put_decided(connection, 15, 1.5, 61.0)
        facts.put_decided(connection, 15, 1.5, 62.0)
        facts.put_decided(connection, 3, 0.25, 185.0)
        assert facts.decided(connection)[-1] == (240.0, 8, 0.75)
        facts.claim(connection, "one")
        facts.claim(connection, "one")
        with pytest.raises(HistoryError, match="history of another cluster"):
            facts.claim(connection, "two")
    for engine in engines:
        engine.dispose()


def test_pods_of_a_version_before_say_when_they_were_bound_and_why_they_waited(either: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    engine = create_engine(opening.address(either))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        then = MetaData()
        then.reflect(connection)
        job = {"uid": "job", "namespace": "red", "kind": "Job", "name": "train"}
        connection.execute(insert(then.tables["jobs"]), job)
        for uid, record in {
            "told": {"bound": 1005.5, "refused": "0/2 nodes: no GPU"},
            "untold": {"bound": None, "refused": None, "name": "untold"},
            "other": {"name": "other"},
        }.items():
            row = {"uid": uid, "job": "job", "record": record}
            connection.execute(insert(then.tables["pods"]), row)
        connection.execute(insert(then.tables["pods"]), {"uid": "without", "job": "job"})
    engine.dispose()

    engine = opening.open_history(either, writes=True)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
        found = connection.execute(select(PODS.c.uid, PODS.c.bound, PODS.c.waited))
        assert {uid: (bound, waited) for uid, bound, waited in found} == {
            "told": (1005.5, "0/2 nodes: no GPU"),
            "untold": (None, ""),
            "other": (None, ""),
            "without": (None, ""),
        }
    put(engine, usages=[life("told")])
    with opening.readable(either) as connection:
        details = queries.find(connection, "red", "job", "train")
        assert details is not None
        assert {pod.uid: pod.bound for pod in details.pods}["told"] == 1005.5
    engine.dispose()
