"""`alnair profile pair` on small programs."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.node.pairing import measuring

TICKS = "import time\nn = 0\nwhile True:\n n += 1; print('step', n); time.sleep(0.01)"
COMMAND = shlex.join([sys.executable, "-c", TICKS])
QUICK = ("--rounds", 1, "--warm-up", 0, "--seconds", 0.3)


def profile(*arguments: object) -> Result:
    words = ["profile", "pair", *map(str, arguments)]
    return CliRunner().invoke(main.build(["profile"]), words)


def test_a_pair_is_shown_written_as_json_and_added_to_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Until enough is seen, also where this process stands still for seconds.
    monkeypatch.setattr(measuring, "LONGER", 100)
    table = tmp_path / "pairs.json"
    more = ("--out", table, "--model", "A100", "--kinds", "a,b", "--json")
    done = profile(COMMAND, COMMAND, *QUICK, *more)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1])
    assert 0 < found["first"]["speed"] <= 1
    assert found["rounds"] == 1
    assert "together they do" in done.output
    written = json.loads(table.read_text())["A100"]
    assert written["kinds"] == ["a", "b"]
    assert written["rates"][0][1] == pytest.approx(found["first"]["speed"], abs=0.001)
