"""`alnair history` on a database: its tables, its words, and how it ends."""

import csv
import io
import json
import re
import sqlite3
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.model.api_types import Workload
from alnair.model.job_facts import CudaCalls, Figure, ModelFacts, Name
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


def test_what_a_job_does_is_told_in_words(tmp_path: Path) -> None:
    found = Workload(
        1, "2026-01-01T00:00:00Z", "training", "pytorch", 0.25, step=70, progress=0.5, eta_s=90
    )
    put(opened(tmp_path), usages=[life(ended=None, workload=found)])
    told = history("show", "pod", "--history", tmp_path / "history.db").stdout
    assert (
        "workload: training, pytorch, 0.25 s an iteration, step 70, 50 % done, 1m 30s left" in told
    )
    assert "so far" in told


@pytest.mark.parametrize("words", [("train",), ("job/train",), ("train", "-n", "red")])
def test_a_name_is_enough_where_one_job_has_it(database: Path, words: tuple[str, ...]) -> None:
    told = history("show", *words, "--history", database, "--json")
    assert json.loads(told.stdout)["job"]["namespace"] == "red"


def test_a_name_that_several_have_is_asked_back(tmp_path: Path, database: Path) -> None:
    put(opened(tmp_path), jobs=[job_row("x", namespace="blue")], pods=[pod_row("x0", "x")])
    told = history("show", "train", "--history", database)
    assert told.exit_code == 2
    assert "may be blue/Job/train, red/Job/train" in " ".join(told.output.replace("│", " ").split())
    assert history("show", "train", "-n", "blue", "--history", database).exit_code == 0


def test_a_part_of_time_is_listed_and_what_is_not_told_is_said(database: Path) -> None:
    none = history("--history", database, "--until", "1970-01-01")
    assert (none.exit_code, "no job is as wanted" in none.stderr) == (0, True)
    more = history("--history", database, "--limit", 1)
    assert "the newest 1: for more, --limit" in more.stderr
    assert len(more.stdout.splitlines()) == 2
    assert history("--history", database, "--since", "yesterday").exit_code == 0
    assert len(history("--history", database, "--kind", "job").stdout.splitlines()) == 3
    assert history("--history", database, "--kind", "jo").stdout.splitlines()[1:] == []


def test_a_job_is_shown_with_what_it_worked_on(tmp_path: Path) -> None:
    did = Workload(
        1,
        "2026-11-23T12:00:00Z",
        model=ModelFacts(Name("org/tiny", "option --model"), Figure(124e6, "log")),
        cuda=CudaCalls(unknown="nobody counts"),
    )
    ran = {"started": 1010.0, "ended": 8210.0, "outcome": "completed", "node": "n"}
    usage = msgspec.structs.replace(life(util=25.0), workload=did)
    put(opened(tmp_path), jobs=[job_row()], pods=[pod_row(**ran)], usages=[usage])
    run = history("show", "red/job/train", "--history", tmp_path / "history.db")
    assert run.exit_code == 0, run.output
    lines = " ".join(run.stdout.split())
    for words in ("model org/tiny (option --model)", "parameters 124M (log)", "input unknown"):
        assert words in lines
    assert "CUDA calls unknown (nobody counts)" in lines


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "red/Job/none"), 1, "there is no such job in the history"),
        (("show", "none"), 1, "none: there is no such job in the history"),
        (("show", "/train"), 2, "write NAMESPACE/KIND/NAME"),
        (("show", "red/Job/train", "-n", "red"), 2, "write NAMESPACE/KIND/NAME"),
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


def test_the_questions_of_the_page_are_sql_of_these_tables(database: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "keep-a-history.md").read_text()
    questions = [
        one
        for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
        for one in block.split(";")
    ]
    with sqlite3.connect(database) as connection:
        rows = [connection.execute(one).fetchall() for one in questions if one.strip()]
    connection.close()
    assert len(rows) == 5
    assert rows[0] == [("ann", 1.5), ("bob", 0.0)]
    assert rows[3] == [("1970-01-01", "red", 2.0, 0.5)]
