"""Memory of `alnair controller` with a history of no jobs, of 100,000 and of 500,000.

Makes the histories (the largest by copies of the second, under other uids), starts a controller
with each on a local cluster of its own, asks its pages for lists of jobs, again and again, and
reads its resident memory: 15 s after the start, after the questions, and the most there ever was.
Prints a table, then a line of JSON.

    python benchmarks/history_memory.py [--jobs 0,100000,500000] [--asked 300] [--folder DIR]
"""

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import aiohttp

from lib.job_lives import WEEK, fill

NAME = "history-memory"
BEGIN = 1_767_225_600.0
MADE = 100_000
QUERIES = ("", "?namespace=team-1", "?state=failed&limit=1000", "?since=7d&user=user-3")


def make(path: Path, jobs: int) -> None:
    """Make a history of so many jobs."""
    fill(str(path), min(jobs, MADE) or 1, BEGIN, WEEK, seed=2)
    with sqlite3.connect(path) as connection:
        for number in range(1, jobs // MADE):
            for table, keys in (("jobs", ("uid",)), ("pods", ("uid", "job"))):
                names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                columns = ", ".join(f'"{name}"' for name in names)
                values = ", ".join(
                    f"'{number}-' || \"{name}\"" if name in keys else f'"{name}"' for name in names
                )
                first = "uid GLOB '[0-9a-fp]*' AND uid NOT GLOB '[0-9]-*'"
                connection.execute(
                    f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table} WHERE {first}"
                )
            connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def status_mib(pid: int, name: str) -> float:
    """Return a figure of /proc/PID/status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


def alnair(verb: str, *more: str) -> None:
    """Start or end the cluster."""
    command = [sys.executable, "-m", "alnair", verb, "--name", NAME, *more]
    subprocess.run(command, check=True, stdout=sys.stderr)


async def measure(path: Path, asked: int) -> dict[str, float]:
    """Return a controller's memory, MiB, with this history."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "alnair", "controller", "--name", NAME, "--no-leader-elect"),
        *("--history", str(path), "--history-keep", "36500d"),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        while b"serving health at" not in (line := await process.stderr.readline()):
            if not line:
                raise SystemExit("the controller ended")
        url = line.split()[-1].decode().removesuffix("/healthz")
        drain = asyncio.create_task(process.stderr.read())
        await asyncio.sleep(15)
        started = status_mib(process.pid, "VmRSS")
        async with aiohttp.ClientSession(url) as session:
            for number in range(asked):
                query = QUERIES[number % len(QUERIES)]
                async with session.get(f"/v1/history/jobs{query}") as answer:
                    answer.raise_for_status()
                    await answer.read()
        await asyncio.sleep(1)
        found = {
            "started_mib": started,
            "asked_mib": status_mib(process.pid, "VmRSS"),
            "most_mib": status_mib(process.pid, "VmHWM"),
        }
        process.send_signal(signal.SIGTERM)
        await process.wait()
        await drain
        return found
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--jobs", default="0,100000,500000")
    options.add_argument("--asked", type=int, default=300)
    options.add_argument("--folder", type=Path, help="keep the histories there")
    given = options.parse_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="alnair-history-") as temporary:
        folder = given.folder or Path(temporary)
        os.environ["ALNAIR_STATE"] = f"{temporary}/clusters"
        alnair("up", "--nodes", "4")
        print(f"{'jobs':>8} {'file':>9} {'started':>9} {'asked':>9} {'most':>9}   MiB", flush=True)
        try:
            for jobs in map(int, given.jobs.split(",")):
                path = folder / f"history-{jobs}.db"
                if not path.exists():
                    make(path, jobs)
                row = asyncio.run(measure(path, given.asked))
                found[jobs] = {"file_mib": path.stat().st_size / 2**20, **row}
                figures = " ".join(f"{value:9.1f}" for value in found[jobs].values())
                print(f"{jobs:8} {figures}", flush=True)
        finally:
            alnair("down")
    print(json.dumps({"benchmark": "history_memory", "jobs": found}))


if __name__ == "__main__":
    main()
