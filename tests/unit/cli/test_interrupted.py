"""What an interrupt leaves of a command: a sentence, the exit code 130, and never a traceback."""

import subprocess
import sys

import pytest
import typer

from alnair.cli.failures import INTERRUPTED
from alnair.cli.interrupted import saying, told

#: Runs the command, and sends itself Ctrl-C when it comes to import a module.
_INTERRUPTED_AT = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
# A shell that starts this in the background has SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
_, module, *words = sys.argv
sys.argv = ["alnair", *words]
sys.meta_path.insert(0, Finder())
runpy.run_module("alnair", run_name="__main__")
"""


def interrupted() -> None:
    raise KeyboardInterrupt


def test_a_command_with_no_words_of_its_own_says_that_it_was_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended:
        told(interrupted)()
    assert ended.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "alnair: interrupted\n"


def test_how_far_it_came_is_asked_when_it_is_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done: list[int] = []

    def work() -> None:
        with saying(lambda: f" after {len(done)} of 9 pods"):
            done.extend(range(4))
            interrupted()

    with pytest.raises(typer.Exit):
        work()
    assert "interrupted after 4 of 9 pods" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("typer", ("--version",)),
        ("alnair.cli.explain", ("explain", "--help")),
        ("numpy", ("simulate", "placement")),
        ("sqlalchemy", ("history", "--history", "none.db")),
    ],
)
def test_an_interrupt_while_the_command_is_loaded_shows_no_traceback(
    module: str, words: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT, module, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == INTERRUPTED, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("alnair: interrupted")
