"""A writer of a history that never commits its third job: `python -m kit.stuck_writer URL`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

from sqlalchemy import Connection

from alnair.history.database import daily, opening
from kit.job_history import job_row, pod_row, put

_SAID = b"in the middle\n"


def kill_in_the_middle(url: str) -> None:
    """Kill a writer when sums of a job's day are computed, and nothing of it is committed."""
    folders = os.pathsep.join(one for one in sys.path if one)
    process = subprocess.Popen(
        [sys.executable, "-m", "kit.stuck_writer", url],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": folders},
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert said == _SAID


def _write(url: str) -> None:
    engine = opening.open_history(url, writes=True)
    refresh = daily.refresh

    def stuck(connection: Connection, changed: Iterable[daily.Key]) -> None:
        refresh(connection, changed)
        os.write(1, _SAID)
        time.sleep(60)

    for number in range(3):
        if number == 2:
            daily.refresh = stuck
        name = f"job{number}"
        pod = pod_row(f"p{number}", name, started=1010.0, ended=1110.0, outcome="completed")
        put(engine, jobs=[job_row(name, name)], pods=[pod])


if __name__ == "__main__":
    _write(sys.argv[1])
