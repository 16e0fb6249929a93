"""The command `alnair` as a user runs it: another process."""

import json
import subprocess
import sys
from typing import Any

COMMAND = (sys.executable, "-m", "alnair")


def alnair(*arguments: object, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def last_json(done: subprocess.CompletedProcess[str]) -> Any:
    """The last line of its output, which is JSON."""
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])
