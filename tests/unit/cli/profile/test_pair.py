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
        ([COMMAND, "--out", "x.json"], "say both --out and --model"),
        ([COMMAND, "--out", "x.json", "--model", "A100"], "needs the names"),
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
    assert "no table of pairs" in done.output


def test_a_workload_that_fails_is_named() -> None:
    done = profile(COMMAND, COMMAND)
    assert done.exit_code == 1
    assert "/no/such/program does not start" in done.output
