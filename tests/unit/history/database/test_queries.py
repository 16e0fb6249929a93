"""Questions to a history find the jobs that are meant, the newest first."""

from pathlib import Path
from typing import Any

import pytest

from alnair.history.database import opening, queries
from alnair.history.database.filters import QueryError, filter_of
from kit.job_history import job_row, opened, pod_row, put


def asked(folder: Path, **query: str) -> list[str]:
    with opening.readable(str(folder / "history.db")) as connection:
        return [job.name for job in queries.jobs(connection, filter_of(query, now=5000.0))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("a", {}, {"started": 1010.0, "ended": 1100.0, "outcome": "completed"}),
        ("b", {"user": "bob"}, {"created": 2000.0, "started": 2010.0}),
        ("c", {"namespace": "blue"}, {"created": 3000.0}),
        ("d", {}, {"created": 4000.0, "started": 4001.0, "ended": 4500.0, "outcome": "failed"}),
    ]
    engine = opened(tmp_path)
    put(
        engine,
        jobs=[job_row(name, name, **more) for name, more, _ in rows],
        pods=[pod_row(f"{name}-0", name, **more) for name, _, more in rows],
    )
    return tmp_path


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["d", "c", "b", "a"]),
        ({"limit": "2"}, ["d", "c"]),
        ({"namespace": "red"}, ["d", "b", "a"]),
        ({"user": "bob"}, ["b"]),
        ({"state": "running"}, ["b"]),
        ({"state": "pending"}, ["c"]),
        ({"state": "failed"}, ["d"]),
        ({"since": "1000s"}, ["d", "c", "b"]),
        ({"until": "1970-01-01T00:40:00"}, ["b", "a"]),
        ({"name": "a", "kind": "Job"}, ["a"]),
    ],
)
def test_a_filter_finds_its_jobs(folder: Path, query: dict[str, str], found: list[str]) -> None:
    assert asked(folder, **query) == found


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"state": "bad"}, "state=bad: write one of running"),
        ({"since": "soon"}, "since=soon: write 90s"),
        ({"limit": "0"}, "limit=0: write a number"),
        ({"limit": "many"}, "limit=many: write a number"),
        ({"team": "red"}, "team: there is no such filter"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(
    folder: Path, query: dict[str, str], said: str
) -> None:
    with pytest.raises(QueryError, match=said):
        asked(folder, **query)


def test_of_several_jobs_of_one_name_the_newest_is_shown(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    rows = [job_row("1", "train"), job_row("2", "train")]
    pods = [pod_row("p1", "1"), pod_row("p2", "2", created=2000.0)]
    put(engine, jobs=rows, pods=pods)
    with opening.readable(str(tmp_path / "history.db")) as connection:
        found = queries.find(connection, "red", "job", "train")
        assert found is not None
        assert found.job.uid == "2"
        assert queries.find(connection, "red", "job", "other") is None
