"""Made-up lives of jobs, written into a history as the controller writes them."""

import random
import time
from collections.abc import Iterator

from alnair.history.database import opening, writing
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
