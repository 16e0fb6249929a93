"""What each start of the command costs is set before anything is imported."""

import os
import subprocess
import sys

import pytest

#: Loads NumPy as a command does, and says how many threads there are, and what a program of the
#: user's inherits.
_LOADS_NUMPY = """
import os, sys, types
sys.modules["alnair.cli.main"] = main = types.ModuleType("alnair.cli.main")
main.main = lambda: __import__("numpy")
from alnair.cli.entry import main as entry
entry()
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(("said", "threads"), [(None, 1), ("2", min(2, os.cpu_count() or 1))])
def test_numpy_starts_no_threads_but_those_that_the_user_wants(
    said: str | None, threads: int
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    if said:
        environment["OPENBLAS_NUM_THREADS"] = said
    command = [sys.executable, "-c", _LOADS_NUMPY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(threads), str(said)]
