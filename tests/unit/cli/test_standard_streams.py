"""What a command does whose stdout cannot be written, or is closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: A command that takes any error of the system for one of its cluster, and writes `lines` lines.
_COMMAND = """
import sys, types
import typer
from alnair.cli.failures import expected
from alnair.cli.entry import main as entry

app = typer.Typer(pretty_exceptions_enable=False)

@app.command()
def write(lines: int) -> None:
    with expected(OSError, code=3, before="the cluster cannot be read: "):
        for _ in range(lines):
            print("x" * 100)
        print("done", file=sys.stderr)

sys.modules["alnair.cli.main"] = main = types.ModuleType("alnair.cli.main")
main.main = app
entry()
"""


@pytest.mark.parametrize(("lines", "unbuffered"), [("1", ""), ("10000", ""), ("1", "1")])
def test_a_full_disk_is_told_as_what_it_is(lines: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(lines, stdout=full, unbuffered=unbuffered)
    assert done.returncode == 1
    said = done.stderr.removeprefix("done\n")
    assert said == "alnair: stdout cannot be written: No space left on device\n"


@pytest.mark.parametrize("lines", ["1", "10000"])
def test_a_reader_that_is_gone_ends_the_command_without_a_word(lines: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = run(lines, stdout=pipe)
    assert done.returncode == 1
    assert done.stderr.removeprefix("done\n") == ""


def test_closed_streams_are_as_good_as_none() -> None:
    command = ["sh", "-c", 'exec "$0" "$@" <&- >&-', sys.executable, "-c", _COMMAND, "3"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "done\n")


def test_what_is_written_comes_as_ever() -> None:
    done = run("2", stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, ("x" * 100 + "\n") * 2)


def run(lines: str, stdout: object, unbuffered: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", _COMMAND, lines],
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        stdout=stdout,  # type: ignore[call-overload]
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
