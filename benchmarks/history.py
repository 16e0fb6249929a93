"""A week of history of 100,000 jobs: what questions take, how fast lives are written, and memory.

Writes the jobs as the controller does, in transactions of 500 pods with their usage, into SQLite
with its durable settings; then asks each question many times, and adds a day more while the
process's memory is watched. Prints a table, then a line of JSON.

    python benchmarks/history.py [--jobs 100000] [--asked 200] [--history FILE]

Times are by the wall clock and, for busy machines, of the processor; the file lies in $TMPDIR.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from alnair.history.database import efficiency, opening, queries, writing
from alnair.history.database.queries import Filter
from alnair.history.database.rows import Changes, JobRow, PodRow, Position
from alnair.model import usage
from alnair.model.usage import Digest, PodUsage, UsedGpu

WEEK = 7 * 86400.0
BATCH = 500
NAMESPACES, USERS = 40, 300


def digest(mean: float) -> Digest:
    return Digest(mean, min(mean * 2, 100.0), mean * 1.5, 600.0)


def lives(
    count: int, begin: float, seconds: float, seed: int
) -> Iterator[tuple[JobRow, PodRow, PodUsage]]:
    """Made-up jobs of a pod each, in the order of their submission."""
    draw = random.Random(seed)
    times = sorted(draw.uniform(begin, begin + seconds) for _ in range(count))
    for number, submitted in enumerate(times):
        uid = f"{seed:08x}-{number:08x}-4000-8000-000000000000"
        namespace = f"team-{int(NAMESPACES * draw.random() ** 2)}"
        started = submitted + draw.expovariate(1 / 60.0)
        ended = started + draw.lognormvariate(6.5, 1.5)
        node, name = f"node-{number % 100}", f"train-{number}"
        record = {"uid": f"p{uid}", "namespace": namespace, "name": f"{name}-x", "job": name}
        metrics = {
            metric: digest(draw.uniform(5, 60))
            for metric in (
                *(usage.GPU_UTIL, usage.GPU_MEMORY_MIB, usage.CPU_CORES, usage.MEMORY_MIB),
                *(usage.POWER_W, usage.IO_READ_MIB_S, usage.NET_RX_MIB_S, usage.NET_TX_MIB_S),
            )
        }
        yield (
            JobRow(
                uid=uid,
                namespace=namespace,
                api_group="batch",
                api_version="v1",
                kind="Job",
                name=name,
                series=f"Job/train-{number % 1000}",
                user=f"user-{int(USERS * draw.random() ** 2)}",
                labels={"app": "train", "team": namespace},
                submitted=submitted,
            ),
            PodRow(
                uid=f"p{uid}",
                job=uid,
                namespace=namespace,
                name=f"{name}-x",
                node=node,
                gpus=float(draw.choice((1, 1, 1, 2, 4, 8))),
                gpu_model="A100",
                created=submitted,
                started=started,
                ended=ended,
                gone=ended + 60,
                outcome=draw.choice(("completed", "completed", "completed", "failed", "deleted")),
                record=record,
            ),
            PodUsage(
                v=1,
                node=node,
                namespace=namespace,
                pod=f"{name}-x",
                uid=f"p{uid}",
                started=started,
                ended=ended,
                metrics=metrics,
                containers={"main": metrics},
                gpus=[UsedGpu(f"GPU-{number % 800}", "A100", 81920, whole=True)],
            ),
        )


def rss_mib() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def fill(path: str, count: int, begin: float, seconds: float, seed: int) -> float:
    """Write jobs as the controller does; returns the jobs a second."""
    engine = opening.open_history(path, writes=True)
    began = time.perf_counter()
    batch: list[tuple[JobRow, PodRow, PodUsage]] = []

    def write() -> None:
        with engine.begin() as connection:
            changes = Changes(
                jobs=[job for job, _, _ in batch],
                pods=[pod for _, pod, _ in batch],
                usages=[used for _, _, used in batch],
                position=Position("node-0", "stream", seed),
                looked=begin,
            )
            writing.write(connection, changes, batch[-1][1].ended or begin)
        batch.clear()

    for one in lives(count, begin, seconds, seed):
        batch.append(one)
        if len(batch) == BATCH:
            write()
    if batch:
        write()
    engine.dispose()
    return count / (time.perf_counter() - began)


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
        "of a series": listed(
            namespace=namespace, series=lambda: f"Job/train-{draw.randrange(1000)}"
        ),
        "one job": show,
        "GPU hours by namespace": lambda found: efficiency.shares(found, "namespace", None),
        "GPU hours by user, last day": lambda found: efficiency.shares(found, "user", now - 86400),
        "worst ten": lambda found: efficiency.worst(found, None, 10),
    }


def asked(path: str, times: int, now: float) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each question."""
    found: dict[str, dict[str, float]] = {}
    with opening.readable(path) as connection:
        newest = queries.jobs(connection, Filter(limit=10_000))
        names = [(job.namespace, job.name) for job in newest]
        for name, ask in questions(now, names).items():
            took, computed = [], []
            for _ in range(times):
                began, computing = time.perf_counter(), time.process_time()
                ask(connection)
                took.append((time.perf_counter() - began) * 1000.0)
                computed.append((time.process_time() - computing) * 1000.0)
            last = min(int(0.99 * times), times - 1)
            found[name] = {
                "p50_ms": sorted(took)[times // 2],
                "p99_ms": sorted(took)[last],
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
    print(f"{'question':30} {'p50 ms':>8} {'p99 ms':>8} {'p99 of CPU':>10}")
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
