"""`alnair analyze log` on the golden corpus, on standard input, and on what it cannot read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main

CORPUS = Path(__file__).parents[3] / "golden" / "logs"


def analyze(*arguments: object, stdin: bytes | None = None) -> Result:
    words = ["analyze", "log", *map(str, arguments)]
    return CliRunner().invoke(main.build(["analyze"]), words, input=stdin)


@pytest.mark.parametrize("option", [["--json"], ["-o", "json"]])
def test_findings_are_one_line_of_json(option: list[str]) -> None:
    done = analyze(CORPUS / "hugging-face.log", *option)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["framework"], found["step"], found["epoch"]) == ("hugging-face", 750, 1.5)
    assert (found["loss"], found["rate"], found["eta_s"]) == (0.3127, 2.0, 375.0)


def test_people_read_what_is_known_and_how_to_know_more() -> None:
    done = analyze(CORPUS / "imagenet.log")
    assert done.exit_code == 0, done.output
    assert "step       501 of 5005" in done.stdout
    assert "say --steps or --epochs" in done.stdout
    assert (
        "left       30m 2s (between 27m" in analyze(CORPUS / "imagenet.log", "--epochs", 2).stdout
    )


def test_a_dash_reads_standard_input() -> None:
    done = analyze("-", "--json", stdin=b"step 3/10 loss=0.5\n")
    assert json.loads(done.stdout)["progress"] == 0.3


def test_a_pattern_reads_a_format_of_ones_own() -> None:
    done = analyze("-", "--pattern", r"(?P<step>\d+)->(?P<steps>\d+)", "--json", stdin=b"3->12\n")
    assert json.loads(done.stdout)["progress"] == 0.25


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere.log"], 2, "No such file"),
        ([str(CORPUS)], 2, "directory"),
        ([str(CORPUS / "not-a-training.log")], 1, "lines is of a known format"),
        ([str(CORPUS / "mnist.log"), "--pattern", "(?P<step>x)"], 1, "is matched by the pattern"),
        ([str(CORPUS / "mnist.log"), "--pattern", "("], 2, "no regular expression"),
        ([str(CORPUS / "mnist.log"), "--pattern", "(?P<stap>x)"], 2, "means nothing here"),
    ],
)
def test_what_cannot_be_read_is_said_with_what_to_do(
    arguments: list[str], code: int, said: str
) -> None:
    done = analyze(*arguments)
    assert done.exit_code == code, done.output
    assert said in done.output.replace("\n", " ")
