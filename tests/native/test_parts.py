"""`make test-native` says how far it is, what failed, and ends in a table."""

import subprocess
import sys
from pathlib import Path

import pytest

from native import build, parts

TESTS = """
import pytest
def test_holds(): pass
def test_does_not(): assert 0, "a reason"
@pytest.mark.skip(reason="elsewhere")
def test_elsewhere(): pass
"""


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LOGS", tmp_path / "logs")


def test_tests_and_inputs_are_counted_and_the_end_of_what_failed_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_three.py").write_text(TESTS)
    tests = parts.run(parts.by_pytest("three", str(tmp_path), "-p", "no:xdist"))
    fuzzer = parts.run(parts.by_inputs("fuzz", "echo", "fuzz x: 1200 inputs, no crash"))
    said = capsys.readouterr().out
    assert "three: 1 failed" in said
    assert "a reason" in said
    assert "fuzz: passed" in said
    assert tests.counts == parts.Counts(3, 1, 1)
    assert fuzzer.counts == parts.Counts(1200, 0, told="fuzz x: 1200 inputs, no crash")
    last = parts.table([tests, fuzzer]).splitlines()[-1].split()
    assert last[:6] == ["in", "all", "1,203", "1,201", "1", "1"]


def test_a_part_that_ends_before_it_tells_anything_has_failed() -> None:
    assert parts.run(parts.by_pytest("none", "--no-such-option")).counts.failed == 1
    assert parts.run(parts.by_status("none", "false")).counts.failed == 1


def test_a_part_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    script = build.ROOT / "tests" / "native" / "thorough.py"
    done = subprocess.run(
        [sys.executable, script, "--only", "adress"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no part is called adress; there are address, undefined, thread" in done.stderr
