"""A report reads the controller's history as it reads a record."""

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from alnair.cli import main
from alnair.history.database.rows import NodeRow
from alnair.history.history import History
from alnair.live.recording import known_from_database, windows
from alnair.live.recording.record_lines import NodeRecord, PodRecord
from kit.job_history import job_row, life, opened, pod_row, put


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Two pods of a job that had a GPU each for 100 s, one of which was preempted."""
    node = NodeRecord(name="n", created=500.0, cpu_milli=8000, gpu_count=2, model="T4")
    rows = []
    for uid, how in (("a", "completed"), ("b", "preempted")):
        phase = "completed" if how == "completed" else ""
        record = PodRecord(
            uid=uid, namespace="red", name=uid, job="Pod/x", created=1000.0, whole=1, node="n",
            bound=1010.0, phase=phase, ended=1110.0 if phase else 0.0,
        )  # fmt: skip
        more = {"started": 1010.0, "ended": 1110.0, "gone": 1110.0, "node": "n"}
        rows.append(pod_row(uid, outcome=how, record=msgspec.to_builtins(record), **more))
    put(
        opened(tmp_path),
        jobs=[job_row()],
        pods=rows,
        usages=[life("a", util=25.0)],
        nodes=[
            NodeRow(name="n", ready=True, since=500.0, record=msgspec.to_builtins(node)),
        ],
        looked=1200.0,
    )
    return tmp_path / "history.db"


def read(database: Path) -> History:
    found = windows.read(
        [str(database)], windows.Window(), lambda name: (known_from_database.load(name), "it")
    )
    return found["history"]


def test_jobs_pods_and_nodes_are_those_of_the_history(database: Path) -> None:
    found = read(database)
    (job,) = found.jobs.values()
    assert (job.name, job.user, len(job.pods)) == ("red/Job/train", "red", 2)
    stays = {uid: pod.stays[0] for uid, pod in found.pods.items()}
    assert {uid: (stay.how, stay.used) for uid, stay in stays.items()} == {
        "a": ("completed", 25.0),
        "b": ("preempted", None),
    }
    assert len(found.nodes["n"].node.gpus) == 2
    assert found.nodes["n"].up == [(-500.0, None)]


def test_the_report_has_figures_of_it(database: Path) -> None:
    arguments = ["report", "scheduling", "--history", str(database), "--json"]
    run = CliRunner().invoke(main.build(["report"]), arguments)
    assert run.exit_code == 0, run.output
    gpu = json.loads(run.stdout.splitlines()[-1])["runs"]["history"]["gpu"]
    assert gpu["allocated_hours"] == pytest.approx(200 / 3600)
    assert gpu["used_hours"] == pytest.approx(25 / 3600)
    assert gpu["unmeasured_hours"] == pytest.approx(100 / 3600)
