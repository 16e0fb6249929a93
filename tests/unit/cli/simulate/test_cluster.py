"""`alnair simulate cluster` as a user runs it: equal again, killed, interrupted, wrong."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from alnair.cli import main
from alnair.history import history_file
from alnair.history.history import History
from alnair.sim import checkpoint
from kit.command import COMMAND, alnair, last_json

JOBS = 400


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Too many jobs for a small cluster, some of them gangs; returns the arguments."""
    lines = ["timestamp,duration,num_gpus,cluster"]
    for i in range(JOBS):
        minutes = i // 2
        gpus = 16 if i % 40 == 7 else (1, 1, 2, 4, 8, 1, 1, 2)[i % 8]
        stamp = f"2017-10-{9 + minutes // 1440:02} {minutes // 60 % 24:02}:{minutes % 60:02}:00"
        lines.append(f"{stamp},{60 + i * 37 % 900},{gpus},user{i % 5}")
    path = tmp_path_factory.mktemp("trace") / "jobs.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path), "--nodes", "5x8xV100", "--durations", "learned"


@pytest.fixture(scope="module")
def whole(trace: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, History]:
    """The result and the history of a run that nothing disturbs."""
    path = tmp_path_factory.mktemp("whole") / "history.gz"
    done = alnair("simulate", "cluster", *trace, "--json", "--history", path)
    assert done.returncode == 0, done.stderr
    return last_json(done), history_file.load(path)


def untimed(history: History) -> History:
    """A history without what differs from run to run: how long decisions took."""
    return msgspec.structs.replace(history, decision_seconds=0.0)


#: Runs the command, and has this signal come once it has written a checkpoint.
SIGNALLED = """
import os, runpy, sys
from alnair.sim import checkpoint
_, number, *words = sys.argv
save = checkpoint.save
def and_signal(*arguments):
    save(*arguments)
    checkpoint.save = save
    os.kill(os.getpid(), int(number))
checkpoint.save = and_signal
sys.argv = ["alnair", *words]
runpy.run_module("alnair", run_name="__main__")
"""


def signalled(
    number: signal.Signals, trace: tuple[str, ...], kept: Path
) -> subprocess.CompletedProcess[str]:
    """A simulation to which a signal comes when its first checkpoint is there."""
    keeping = ("--checkpoint", str(kept), "--checkpoint-every", "0")
    words = ["simulate", "cluster", *trace, *keeping]
    return subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(int(number)), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_all_jobs_are_simulated_and_measured(whole: tuple[Any, History]) -> None:
    result, history = whole
    assert result["jobs"] == result["finished"] == JOBS == len(history.jobs)
    assert result["simulated_s"] == history.end
    assert result["times_real_time"] > 1000
    assert result["metrics"]["wait"]["all"]["over"]["max"] > 0, "the cluster is overloaded"
    assert result["metrics"]["gangs"]["whole"] == JOBS // 40


def test_jobs_that_never_started_are_told_beside_the_waits_of_the_others(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("timestamp,duration,num_gpus\n0,100,4\n0,100,8\n")
    done = CliRunner().invoke(
        main.build(["simulate"]), ["simulate", "cluster", str(table), "--nodes", "1x4xV100"]
    )
    assert done.exit_code == 0, done.output
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "wait mean 0 s, p50 0 s, p90 0 s, p99 0 s; 1 not started" in lines
    assert "completion mean 100 s, p50 100 s, p90 100 s, p99 100 s; 1 not finished" in lines


def test_the_same_seed_decides_the_same_however_python_hashes(
    trace: tuple[str, ...], whole: tuple[Any, History], tmp_path: Path
) -> None:
    path = tmp_path / "history.gz"
    done = subprocess.run(
        [*COMMAND, "simulate", "cluster", *trace, "--json", "--history", str(path)],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert last_json(done)["digest"] == whole[0]["digest"]
    assert untimed(history_file.load(path)) == untimed(whole[1])


def test_what_was_killed_goes_on_as_if_nothing_had_been(
    trace: tuple[str, ...], whole: tuple[Any, History], tmp_path: Path
) -> None:
    kept, path = tmp_path / "kept.sim", tmp_path / "history.gz"
    assert signalled(signal.SIGKILL, trace, kept).returncode == -signal.SIGKILL
    before = checkpoint.load(kept).progress
    assert 0 < before.finished < JOBS
    done = alnair("simulate", "cluster", "--resume", kept, "--json", "--history", path)
    assert done.returncode == 0, done.stderr
    assert last_json(done)["digest"] == whole[0]["digest"]
    assert untimed(history_file.load(path)) == untimed(whole[1])


def test_an_interrupt_leaves_a_checkpoint(trace: tuple[str, ...], tmp_path: Path) -> None:
    kept = tmp_path / "kept.sim"
    done = signalled(signal.SIGINT, trace, kept)
    assert done.returncode == 130, done.stderr
    assert f"go on with --resume {kept}" in done.stderr
    refused = alnair("simulate", "cluster", "--resume", kept, "--seed", 3)
    assert refused.returncode == 2
    assert "--seed" in refused.stderr
    assert "the checkpoint says what is simulated" in refused.stderr


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("no-such-file",), "no-such-file"),
        (("--profile", "fastest"), "--profile"),
        (("--durations", "known"), "--durations"),
        (("--interference", "perhaps"), "--interference"),
        (("--nodes", "many"), "--nodes"),
        (("--limit", "0"), "--limit"),
        (("--stop-at", "-1"), "--stop-at"),
        (("--stop-at", "inf"), "inf is no number of seconds from 0 to 1e+09"),
        (("--grace", "nan"), "--grace"),
        (("--default-duration", "1e308"), "1e+308 is no number of seconds"),
        (("--submit-at", "inf"), "--submit-at"),
        (("--node-mtbf", "inf"), "--node-mtbf"),
        (("--arrivals", "0"), "--arrivals"),
        (("--config", "no-such-file"), "no-such-file"),
        (("--resume", "no-such-file"), "no-such-file"),
        (("--checkpoint", "/"), "--checkpoint"),
        (("--history", "no/such/folder"), "--history"),
        (("--report", "/"), "--report"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_what_is_wrong(wrong: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(main.build(["simulate"]), ["simulate", "cluster", *wrong])
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize("option", ["--history", "--checkpoint"])
def test_what_is_no_file_stays_what_it_is(option: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    wrong = ["simulate", "cluster", "synthetic", "--jobs", "1", option, str(pipe)]
    done = CliRunner().invoke(main.build(["simulate"]), wrong)
    assert done.exit_code == 2
    assert f"{option} {pipe}: this is a device or a pipe" in done.stderr
    assert pipe.is_fifo()


def test_a_checkpoint_that_is_damaged_or_of_another_version_is_refused(
    trace: tuple[str, ...], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.sim"
    options = ("--limit", 10, "--checkpoint", kept)
    assert alnair("simulate", "cluster", *trace, *options).returncode == 0
    data = kept.read_bytes()
    first, _, rest = data.partition(b"\n")
    kept.write_bytes(data[:-1])
    with pytest.raises(checkpoint.CheckpointError, match="damaged"):
        checkpoint.load(kept)
    kept.write_bytes(first.replace(checkpoint.code().encode(), b"0" * 32) + b"\n" + rest)
    with pytest.raises(checkpoint.CheckpointError, match="another version"):
        checkpoint.load(kept)
    kept.write_bytes(b"name,cpu\n")
    with pytest.raises(checkpoint.CheckpointError, match="no checkpoint"):
        checkpoint.load(kept)


SHARING = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  annotations:
    ai.centaurus.io/workload-kind: {name}
    ai.centaurus.io/expected: >-
      {{"v": 1, "t": "2026-01-01T00:00:00Z", "util": 30, "duration_s": 600}}
spec:
  schedulerName: utilsched
  containers: [{{name: main, image: x, resources: {{limits: {{alnair/vgpu-memory: 1024}}}}}}]
"""


@pytest.fixture
def neighbours(tmp_path: Path) -> Path:
    """Two pods of the kinds `a` and `b`, for a single GPU."""
    path = tmp_path / "pods.yaml"
    path.write_text("---".join(SHARING.format(name=name) for name in "ab"))
    return path


def shared_rate(neighbours: Path, model: str, *more: object) -> tuple[float, str]:
    """The mean speed of the two beside one another, and what is said."""
    words = ["simulate", "cluster", str(neighbours), "--nodes", f"1x1x{model}", "--json"]
    done = CliRunner().invoke(main.build(["simulate"]), [*words, *map(str, more)])
    assert done.exit_code == 0, done.output
    result = msgspec.json.decode(done.stdout.splitlines()[-1])
    return result["metrics"]["sharing"]["rate_mean"], done.stderr


def test_pairs_that_were_measured_are_as_fast_as_they_were_measured(
    neighbours: Path, tmp_path: Path
) -> None:
    table = tmp_path / "pairs.json"
    table.write_text('{"A100": {"kinds": ["a", "b"], "rates": [[1, 0.5], [0.3, 1]]}}')
    assert shared_rate(neighbours, "A100")[0] == 1.0, "together they want less than a GPU"
    assert shared_rate(neighbours, "A100", "--pairs", table)[0] < 0.6
    rate, said = shared_rate(neighbours, "H100", "--pairs", table)
    assert rate == 1.0
    assert "has pairs of A100, and the GPUs here are H100: it changes nothing" in said


def test_a_broken_table_of_pairs_is_refused_with_its_place(
    neighbours: Path, tmp_path: Path
) -> None:
    table = tmp_path / "pairs.json"
    table.write_text('{"A100": {]')
    words = ["simulate", "cluster", str(neighbours), "--nodes", "1x1xA100", "--pairs", str(table)]
    done = CliRunner().invoke(main.build(["simulate"]), words)
    assert done.exit_code == 2
    assert "pairs.json: line 1, column 11: this is no JSON" in done.output
