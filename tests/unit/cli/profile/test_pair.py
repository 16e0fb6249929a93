"""`alnair profile pair` and what it refuses before it runs anything."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main

COMMAND = "/no/such/program"


def profile(*arguments: object) -> Result:
    words = ["profile", "pair", *map(str, arguments)]
    return CliRunner().invoke(main.build(["profile"]), words)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["'"], "No closing quotation"),
        ([""], "there is no command in it"),
        ([COMMAND, "--pattern", "("], "no regular expression"),
        ([COMMAND, "--out", "x.json", "--kinds", "a,b"], "no driver says which GPU this is"),
        ([COMMAND, "--out", "x.json", "--model", "A100"], "needs the names"),
        ([COMMAND, "--out", "no/x.json", "--kinds", "a,b"], "there is no folder no"),
        ([COMMAND, "--heat-map", "x.pdf"], "ends with neither .svg nor .png"),
        ([COMMAND, "--limits", "50"], "'50' are not two percents from 1 to 100"),
        ([COMMAND, "--limits", "50,0"], "'50,0' are not two percents"),
        ([COMMAND, "--mode", "mig"], "'mig' is not one of"),
        ([COMMAND, "--suite"], "the suite has workloads of its own"),
        ([], "give two commands, or --suite"),
        ([COMMAND, "--kinds", "a"], "are not two names"),
    ],
)
def test_wrong_usage_is_refused_before_anything_runs(arguments: list[str], said: str) -> None:
    done = profile("sleep 1", *arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())


def test_a_damaged_table_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "pairs.json").write_text("{")
    more = ("--out", tmp_path / "pairs.json", "--model", "A100", "--kinds", "a,b")
    done = profile(COMMAND, COMMAND, *more)
    assert done.exit_code == 2
    assert "line 1, column 2: this is no JSON" in done.output


def test_a_workload_that_fails_is_named() -> None:
    done = profile(COMMAND, COMMAND)
    assert done.exit_code == 1
    assert "/no/such/program does not start" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kinds", "trainin"], "the suite has no workload 'trainin': did you mean training?"),
        (["--kinds", "xyz"], "there are compute-bound, memory-bound"),
        (["--fake-gpu", "k80", "--fake-gpu", "t4", "--model", "x"], "goes with one GPU alone"),
        (["--limits", "50,40"], "the suite gives each the same share"),
        (["--fake-gpu", "k8"], "there is no fake GPU 'k8': choose among"),
    ],
)
def test_a_suite_that_cannot_be_run_is_refused(arguments: list[str], said: str) -> None:
    done = profile("--suite", *arguments)
    assert done.exit_code in (1, 2), done.output
    assert said in " ".join(done.output.split())


def test_mps_without_a_daemon_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    done = profile(COMMAND, COMMAND, "--mode", "mps")
    assert done.exit_code == 1
    assert f"there is no MPS daemon at {tmp_path}: start one with" in " ".join(done.output.split())
