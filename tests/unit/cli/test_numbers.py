"""What is said of an option's number that is none, or out of range."""

from collections.abc import Sequence

import pytest
from typer.testing import CliRunner

from alnair.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "--port", "x"], "'x' is no whole number: write a whole number from 1024 to 65535"),
        (["up", "--port", "80"], "80 is out of range: write a whole number from 1024 to 65535"),
        (["replay", "--limit", "0"], "0 is out of range: write a whole number of 1 or more"),
        (["replay", "--seed", "1.5"], "'1.5' is no whole number: write a whole number"),
        (["replay", "--tune", "99"], "99 is out of range: write a number from 0.01 to 10"),
        (["scale", "job", "x"], "'x' is no whole number: write a whole number of 1 or more"),
        (["history", "--limit", "0"], "0 is out of range: write a whole number from 1 to 10000"),
        (["simulate", "placement", "--tune", "x"], "'x' is no number: write a number"),
        (["agent", "--sample-every", "9"], "9 is out of range: write a number from 0.2 to 5"),
    ],
)
def test_a_number_that_is_not_taken_is_told_with_those_that_are(
    words: Sequence[str], said: str
) -> None:
    result = CliRunner().invoke(main.build(words[:1]), words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("option", "takes"), [("--tune", "from 0.01 to 10"), ("--patience", "of 1 or more")]
)
def test_what_no_comparison_can_refuse_is_no_number(option: str, takes: str) -> None:
    result = CliRunner().invoke(main.build(["replay"]), ["replay", option, "nan"])
    assert result.exit_code == 2
    assert f"nan is no number: write a number {takes}" in " ".join(result.output.split())


def test_numbers_are_taken_as_ever() -> None:
    words = ["up", "--port", "6443", "--components", "no-such"]
    result = CliRunner().invoke(main.build(["up"]), words)
    assert "there is no component 'no-such'" in result.output
