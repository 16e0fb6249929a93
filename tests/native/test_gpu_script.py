"""`make test-gpu` as far as the fake GPU goes: it runs, and what must be exact is exact."""

import json
import os
import subprocess
import sys

import pytest

from gpu import memory_tests, report, rounds
from native import build

#: Those whose figures the fake can judge, and that take a second.
EXACT = "1,2,3,14"


def ran(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    script = build.ROOT / "tests" / "gpu" / "run.py"
    kept = {name: value for name, value in os.environ.items() if name != "FAKEGPU_STATE"}
    return subprocess.run(
        [sys.executable, str(script), *words],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_gpu_it_says_so_and_succeeds() -> None:
    done = ran("--only", "2", "--scale", "0.02")
    if done.stdout.startswith("skipped: "):
        assert done.returncode == 0
        assert len(done.stdout.splitlines()) == 1
    else:
        pytest.skip("there is a GPU here")


def test_the_limits_are_exact_on_the_fake_gpu() -> None:
    words = ("--only", EXACT, "--scale", "0.02", "--json", "--no-server")
    done = ran(*words, FAKEGPU_STATE="h200")
    rows = json.loads(done.stdout)["rows"]
    assert {row["test"] for row in rows} == {0, 1, 2, 3, 14}
    assert [row for row in rows if row["verdict"] == "FAILED"] == []
    assert done.returncode == 0, done.stderr


def test_a_peak_of_0_bytes_is_a_failure_and_not_a_pass() -> None:
    (row,) = memory_tests._peaks(1, (0, None), 1 << 30)
    assert row.verdict == report.FAILED
    (row,) = memory_tests._peaks(1, (1, None), 1 << 30)
    assert row.verdict == report.OK


def test_the_whole_table_is_planned_for_less_than_ten_minutes() -> None:
    every = list(rounds.TESTS)
    scale = rounds.scale(every, 9.5)
    seconds = sum(one.scaled * scale + one.fixed for one in rounds.TESTS.values())
    assert 0.02 < scale < 1
    assert seconds <= 9.5 * 60
