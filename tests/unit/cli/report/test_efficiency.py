"""`alnair report efficiency`: who wasted GPU hours, and the change that frees them."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.model.usage import Digest
from kit.job_history import job_row, life, opened, pod_row, put


def report(*arguments: object) -> Result:
    return CliRunner().invoke(
        main.build(["report"]), ["report", "efficiency", *map(str, arguments)]
    )


def kept(folder: Path, **job: Any) -> Path:
    ran = {"started": 0.0, "ended": 36000.0, "outcome": "completed"}
    put(
        opened(folder),
        jobs=[job_row(**job)],
        pods=[pod_row(**ran)],
        usages=[life(util=20.0, started=0.0, ended=36000.0)],
    )
    return folder / "history.db"


def test_the_patch_of_a_deployment_gives_its_container_a_slice_with_room(tmp_path: Path) -> None:
    path = kept(tmp_path, api_group="apps", kind="Deployment", name="serve")
    run = report("--history", path, "--json")
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)
    assert told["namespace"]["red"]["wasted_gpu_hours"] == 8.0
    (job,) = told["jobs"]
    command = shlex.split(job["advice"]["apply"])
    assert command[:6] == ["kubectl", "patch", "deployment", "serve", "-n", "red"]
    (container,) = json.loads(command[7])["spec"]["template"]["spec"]["containers"]
    # 2048 MiB x 1.2 and 30 % x 1.25, in steps.
    wanted = {"nvidia.com/gpu": None, "alnair/vgpu-memory": "2560", "alnair/vgpu-compute": "40"}
    limits = {"limits": wanted, "requests": wanted}
    assert container == {"name": "main", "resources": limits}


def test_of_a_cron_job_the_template_is_patched_and_of_a_job_the_manifest_is_told(
    tmp_path: Path,
) -> None:
    path = kept(tmp_path, name="nightly-1", series="CronJob/nightly")
    told = json.loads(report("--history", path, "--json").stdout)["jobs"][0]["advice"]["apply"]
    assert told.startswith('kubectl patch cronjob nightly -n red -p \'{"spec":{"jobTemplate"')
    other = tmp_path / "other"
    other.mkdir()
    run = report("--history", kept(other))
    assert "write into the manifest of container main" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--since", "soon"), 2, "since=soon: write 90s"),
        (("--by", "team"), 2, "team"),
    ],
)
def test_what_means_nothing_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    run = report("--history", kept(tmp_path), *arguments)
    assert run.exit_code == code
    assert said in run.output


def test_without_a_database_it_is_the_cluster_that_is_asked(tmp_path: Path) -> None:
    run = report("--kubeconfig", tmp_path / "none")
    assert run.exit_code == 3
    assert "none" in run.output
    assert "Missing option" not in run.output


def test_where_nothing_was_measured_nothing_is_said_to_be_wasted(tmp_path: Path) -> None:
    put(opened(tmp_path), jobs=[job_row()], pods=[pod_row(started=0.0, ended=36000.0)])
    run = report("--history", tmp_path / "history.db")
    assert "Nothing was measured" in run.stdout
    assert "wasted 0" not in run.stdout


def test_a_report_is_a_folder_and_takes_no_other_ones_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # plots take most of the time
    for name in ("efficiency_plots", "drawing"):
        monkeypatch.delitem(sys.modules, f"alnair.history.report.{name}", raising=False)
    path, folder = kept(tmp_path), tmp_path / "waste"
    for _ in range(2):
        run = report("--history", path, "--report", folder, "--json")
        assert run.exit_code == 0, run.output
    assert (folder / "days.csv").read_text().splitlines() == [
        "day,namespace,jobs,held,measured,used,wasted",
        "1970-01-01,red,1,10.0,10.0,2.0,8.0",
    ]
    assert json.loads((folder / "summary.json").read_text())["format"] == "alnair-report"
    assert "pip install" in (folder / "index.html").read_text()
    run = report("--history", path, "--report", tmp_path)
    assert run.exit_code == 2
    assert "something else than a report" in run.output


def test_odd_jobs_are_told_as_far_as_they_are_known(tmp_path: Path) -> None:
    ends = {"none": 7200.0, "second": 1.0, "empty": 0.0, "runs": None}
    short = {"gpu_util": Digest(0.0, 0.0, 0.0, 1.0)}
    long = {"gpu_util": Digest(0.0, 0.0, 0.0, 3600.0, 0.0)}
    used = {
        "second": life("second", started=0.0, ended=1.0, metrics=short),
        "empty": life("empty", started=0.0, ended=0.0, metrics=short),
        "runs": life("runs", started=0.0, ended=None, metrics=long, containers={"main": long}),
    }
    for name, end in ends.items():
        put(
            opened(tmp_path),
            jobs=[job_row(name, name, namespace=name)],
            pods=[pod_row(name, name, namespace=name, started=0.0, ended=end)],
            usages=[used[name]] if name in used else [],
        )
    run = report("--history", tmp_path / "history.db", "--json")
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)
    figures = {
        name: (one["held_gpu_hours"], one["wasted_gpu_hours"])
        for name, one in told["namespace"].items()
    }
    assert figures == {
        "none": (2.0, 0.0), "second": (0.0, 0.0), "empty": (0.0, 0.0), "runs": (1.0, 1.0),
    }  # fmt: skip
    # Without its memory, nobody knows what part of a GPU would do; of a second, nothing.
    assert [(one["name"], one["advice"]) for one in told["jobs"]] == [
        ("runs", None), ("second", None),
    ]  # fmt: skip
