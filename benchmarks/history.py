"""A week of history of 100,000 jobs: what questions take, how fast lives are written, and memory.

Writes the jobs as the controller does, in transactions of 500 pods with their usage, into SQLite
with its durable settings; then asks each question many times, and adds a day more while the
process's memory is watched. Prints a table, then a line of JSON.

    python benchmarks/history.py [--jobs 100000] [--asked 200] [--history FILE]

Times are by the wall clock; without the time for which the kernel let others run (on a busy machine
nearly all of it: /proc/thread-self/schedstat); and of the processor. The file lies in $TMPDIR.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from alnair.history.database import efficiency, opening, queries
from alnair.history.database.queries import Filter
from lib.job_lives import NAMESPACES, USERS, WEEK, fill


def rss_mib() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def queued_s() -> float:
    """Seconds for which this thread could run and others did; 0 where the kernel does not say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def questions(now: float, names: list[tuple[str, str]]) -> dict[str, Callable[[Connection], Any]]:
    """What people ask, each time of another namespace, user or job."""
    draw = random.Random(7)

    def listed(**wanted: Callable[[], Any]) -> Callable[[Connection], Any]:
        return lambda connection: queries.jobs(
            connection, Filter(**{name: make() for name, make in wanted.items()})
        )

    def show(connection: Connection) -> Any:
        namespace, name = draw.choice(names)
        return queries.find(connection, namespace, "Job", name)

    def namespace() -> str:
        return f"team-{draw.randrange(NAMESPACES)}"

    def user() -> str:
        return f"user-{draw.randrange(USERS)}"

    return {
        "newest 100": listed(),
        "of a namespace": listed(namespace=namespace),
        "of a user, last day": listed(user=user, since=lambda: now - 86400),
        "failed of a namespace": listed(namespace=namespace, state=lambda: "failed"),
        "running": listed(state=lambda: "running"),
        "of a kind that is not there": listed(kind=lambda: "rayjob"),
        "of a kind": listed(kind=lambda: "job"),
        "of a name alone": listed(name=lambda: draw.choice(names)[1]),
        "of a series": listed(
            namespace=namespace, series=lambda: f"Job/train-{draw.randrange(1000)}"
        ),
        "one job": show,
        "GPU hours by namespace": lambda found: efficiency.shares(found, "namespace", None),
        "GPU hours by user, last day": lambda found: efficiency.shares(found, "user", now - 86400),
        "GPU hours of half a week": lambda found: efficiency.shares(found, "user", now - 300_000),
        "GPU hours of each day": lambda found: efficiency.by_day(found, "namespace", None),
        "worst ten": lambda found: efficiency.worst(found, None, 10),
    }


def asked(path: str, times: int, now: float) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each question."""
    found: dict[str, dict[str, float]] = {}
    with opening.readable(path) as connection:
        newest = queries.jobs(connection, Filter(limit=10_000))
        names = [(job.namespace, job.name) for job in newest]
        for name, ask in questions(now, names).items():
            took, own, computed = [], [], []
            for _ in range(times):
                queued, computing, began = queued_s(), time.process_time(), time.perf_counter()
                ask(connection)
                took.append((time.perf_counter() - began) * 1000.0)
                computed.append((time.process_time() - computing) * 1000.0)
                own.append(took[-1] - (queued_s() - queued) * 1000.0)
            last = min(int(0.99 * times), times - 1)
            found[name] = {
                "p50_ms": sorted(took)[times // 2],
                "p99_ms": sorted(took)[last],
                "own_p99_ms": sorted(own)[last],
                "cpu_p99_ms": sorted(computed)[last],
            }
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--jobs", type=int, default=100_000)
    options.add_argument("--asked", type=int, default=200, help="times that each is asked")
    options.add_argument("--history", help="URL or path; default a new SQLite file")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="alnair-history-") as folder:
        path = given.history or str(Path(folder) / "history.db")
        begin = 1_767_225_600.0
        day = given.jobs // 7
        # Of the first writes are the pages, the statements and the interpreter's own growth.
        fill(path, min(2000, day), begin - 86400, 86400.0, seed=1)
        empty = rss_mib()
        rate = fill(path, given.jobs, begin, WEEK, seed=2)
        full = rss_mib()
        more = fill(path, day, begin + WEEK, 86400.0, seed=3)
        after = rss_mib()
        size = Path(path).stat().st_size / 2**20 if Path(path).exists() else 0.0
        found = asked(path, given.asked, begin + WEEK + 86400)
    print(f"{'question':30} {'p50 ms':>8} {'p99 ms':>8} {'without':>8} {'of CPU':>8}")
    for name, took in found.items():
        print(f"{name:30} " + " ".join(f"{value:8.2f}" for value in took.values()))
    print(f"written: {rate:.0f} jobs/s into an empty one, {more:.0f} jobs/s into a full one")
    print(
        f"writer's RSS: {empty:.1f} MiB, after {given.jobs} jobs {full:.1f}, a day on {after:.1f}"
    )
    print(f"size: {size:.0f} MiB")
    result = {
        "benchmark": "history",
        "jobs": given.jobs,
        "worst_p99_ms": max(took["p99_ms"] for took in found.values()),
        "worst_own_p99_ms": max(took["own_p99_ms"] for took in found.values()),
        "worst_cpu_p99_ms": max(took["cpu_p99_ms"] for took in found.values()),
        "jobs_per_s": rate,
        "jobs_per_s_full": more,
        "rss_mib": [empty, full, after],
        "file_mib": size,
        "questions": found,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
