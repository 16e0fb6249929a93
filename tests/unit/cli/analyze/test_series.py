"""`alnair analyze series`: what it says of a file, and what it refuses."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main


def analyze(*arguments: object, stdin: str | bytes | None = None) -> Result:
    words = ["analyze", "series", *map(str, arguments)]
    return CliRunner().invoke(main.build(["analyze"]), words, input=stdin)


def table(values: np.ndarray, step: float = 1.0) -> str:
    rows = (f"{number * step:.3f},{value:.2f}" for number, value in enumerate(values))
    return "time_s,value\n" + "\n".join(rows) + "\n"


def training() -> str:
    noise = np.random.default_rng(1).normal(0, 2, 900)
    values = np.where(np.arange(900) % 12 < 8, 90, 20) + noise
    values[:90] = 0
    return table(values)


def test_a_training_is_told_as_json(tmp_path: Path) -> None:
    path = tmp_path / "util.csv"
    path.write_text(training())
    for spelling in (["--json"], ["-o", "json"]):
        done = analyze(path, *spelling, "--horizon", "2m")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["v"] == 1
        assert found["cyclic"] is True
        assert found["period_s"] == pytest.approx(12, rel=0.01)
        assert [one["name"] for one in found["phases"]] == ["start", "training"]
        assert found["forecast"]["most"] > 85
        assert found["forecast"]["coverage"] == pytest.approx(6 / 7)


def test_a_training_is_told_in_words() -> None:
    done = analyze("-", stdin=training())
    assert done.exit_code == 0, done.output
    assert "900 samples in 899 s, one every 1 s" in done.stdout
    assert "cyclic: yes, every 12" in done.stdout
    assert "training      mean 66" in done.stdout
    assert "note: forecast: 900 s of samples are too few to foresee 3600 s" in done.stdout


def test_a_compressed_file_is_read_whatever_its_rate(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    values = np.where(np.arange(400) % 20 < 7, 3e9, 1e9)
    path.write_bytes(gzip.compress(table(values, step=0.05).encode()))
    done = analyze(path, "--json")
    assert json.loads(done.stdout)["period_s"] == pytest.approx(1.0, rel=0.01)


def test_what_is_not_cyclic_is_said_with_the_reason() -> None:
    done = analyze("-", stdin=table(np.random.default_rng(2).normal(50, 9, 300)))
    assert done.exit_code == 0
    assert "cyclic: no" in done.stdout
    assert "by chance" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time_s,value\n1,2\n2,x\n", "stdin, line 3, column 'value': 'x' is not a number"),
        ("time_s,value\n5,2\n4,2\n", "stdin, line 3, column 'time_s': 4 is before 5"),
        ("a,b\n1,2\n", "stdin, line 1, column 'time_s': the column is missing"),
        ("", "stdin: the file is empty"),
        ("time_s,value\n1,2\n2,3\n", "stdin: 2 samples are too few: 16 at least"),
        (b"\xff\xfe", "stdin, line 1: this is not UTF-8 text"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_column(text: str | bytes, said: str) -> None:
    done = analyze("-", stdin=text)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = analyze(tmp_path / "none.csv")
    assert done.exit_code == 2
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize("options", [("--horizon", "soon"), ("--coverage", "1.5")])
def test_an_option_that_cannot_be_is_named(options: tuple[str, str]) -> None:
    done = analyze("-", *options, stdin=training())
    assert done.exit_code == 2
    assert options[0] in done.stderr
