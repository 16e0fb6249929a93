"""The commands of the local cluster: what they refuse, with which exit code, and their help."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's clusters."""
    monkeypatch.setenv("ALNAIR_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ALNAIR_CACHE", str(tmp_path / "cache"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.build(main.wanted(arguments)), list(arguments))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "--name", "No Good"], "cluster name 'No Good' is not valid: use"),
        (["up", "--nodes", "2", "--gpu-model", "GTX"], "GPU model 'GTX' is not known; known are"),
        (["up", "--components", "etcd,docker"], "there is no component 'docker': choose among"),
        (["up", "--nodes", "-1"], "Invalid value for '--nodes'"),
        (["up", "--port", "80"], "Invalid value for '--port'"),
        (["status", "--name", "/etc"], "cluster name '/etc' is not valid: use"),
        (["down", "--no-such-flag"], "No such option"),
        (["explain", "node/n"], "'node/n' is no pod: write pod/NAME"),
        (["explain", "pod/"], "'pod/' is no pod: write pod/NAME"),
        (["explain", "pod/a/b"], "'pod/a/b' is no pod: write pod/NAME"),
        (["explain", "a", "-n", ".."], "'..' is no namespace"),
    ],
)
def test_a_wrong_use_ends_with_2_and_nothing_done(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_bad_node_list_is_told_with_its_place_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1000,1,-2,T4\n")
    result = run("up", "--nodes-from", str(path))
    assert result.exit_code == 1
    assert result.output == (
        f"alnair: {path}, line 2, column 'gpu': -2 is negative: write 0 or more\n"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["nodes.csv"]


def test_the_status_of_a_cluster_that_is_not_there_is_told_with_the_fix() -> None:
    result = run("status", "--name", "two")
    assert result.exit_code == 1
    assert result.output == (
        "alnair: there is no cluster 'two': start it with 'alnair up --name two'\n"
    )


def test_taking_down_what_is_not_there_is_fine() -> None:
    result = run("down", "--name", "two")
    assert result.exit_code == 0
    assert result.output == "cluster two is down\n"


@pytest.mark.parametrize("verb", ["up", "status", "down"])
def test_help_has_examples_on_lines_of_their_own(verb: str) -> None:
    output = run(verb, "--help").output
    assert "\n  Examples:\n    alnair " + verb in output


def test_help_imports_nothing_slow() -> None:
    program = (
        "import json, sys; from alnair.cli import main; sys.argv = ['alnair', '--help']\n"
        "try: main.main()\n"
        "except SystemExit: print(json.dumps(sorted(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = json.loads(result.stdout.splitlines()[-1])
    slow = {"aiohttp", "numpy", "cryptography", "psutil", "yaml", "rich"}
    assert slow.isdisjoint(imported)
