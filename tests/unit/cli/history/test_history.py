"""`alnair history` on a database: its tables, its words, and how it ends."""

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from kit.job_history import job_row, life, opened, pod_row, put


def history(*arguments: object) -> Result:
    return CliRunner().invoke(main.build(["history"]), ["history", *map(str, arguments)])


@pytest.fixture
def database(tmp_path: Path) -> Path:
    ran = {"started": 1010.0, "ended": 8210.0, "outcome": "completed", "node": "n"}
    put(
        opened(tmp_path),
        jobs=[job_row(), job_row("b", "other", namespace="blue", user="bob")],
        pods=[pod_row(**ran), pod_row("c", "b", created=2000.0)],
        usages=[life(util=25.0)],
    )
    return tmp_path / "history.db"


def test_jobs_are_listed_the_newest_first_with_what_they_used(database: Path) -> None:
    run = history("--history", database)
    assert run.exit_code == 0, run.output
    lines = [line.split() for line in run.stdout.splitlines()]
    assert lines[0][:4] == ["NAMESPACE", "JOB", "USER", "STATE"]
    assert lines[1][:4] == ["blue", "Job/other", "bob", "pending"]
    assert "25 %" in run.stdout


@pytest.mark.parametrize("how", [("--json",), ("-o", "json")])
def test_programs_get_one_line_of_json(database: Path, how: tuple[str, ...]) -> None:
    run = history("--history", database, "--state", "completed", *how)
    (line,) = run.stdout.splitlines()
    (job,) = json.loads(line)["jobs"]
    assert (job["name"], job["duration"], job["gpu_util"]) == ("train", 7200.0, 25.0)


def test_spreadsheets_get_csv_with_empty_cells_for_what_is_not_known(database: Path) -> None:
    run = history("--history", database, "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert [(row["name"], row["gpu_util"], row["duration"]) for row in rows] == [
        ("other", "", ""),
        ("train", "25.0", "7200.0"),
    ]


def test_a_job_is_shown_with_its_pods(database: Path) -> None:
    run = history("show", "red/job/train", "--history", database)
    assert run.exit_code == 0, run.output
    for word in ("red/Job/train", "completed", "1970-01-01 00:16:50Z", "2h", "gpu_memory_mib"):
        assert word in run.stdout
    told = json.loads(history("show", "red/Job/train", "--history", database, "--json").stdout)
    assert told["pods"][0]["usage"]["metrics"]["gpu_util"]["mean"] == 25.0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "red/Job/none"), 1, "there is no such job in the history"),
        (("show", "train"), 2, "write NAMESPACE/KIND/NAME"),
        (("--state", "bad"), 2, "write one of running"),
        (("--since", "soon"), 2, "write 90s"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_what_to_write(
    database: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    run = history(*arguments, "--history", database)
    assert run.exit_code == code
    assert said in " ".join(run.output.replace("│", " ").split())


def test_a_history_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    run = history("--history", tmp_path / "none.db")
    assert (run.exit_code, run.stdout) == (3, "")
    assert "there is no such history" in run.stderr


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_schema_is_sql(dialect: str) -> None:
    run = history("schema", "--dialect", dialect)
    assert "CREATE TABLE jobs" in run.stdout
    if dialect == "sqlite":
        with sqlite3.connect(":memory:") as connection:
            connection.executescript(run.stdout)
        connection.close()
