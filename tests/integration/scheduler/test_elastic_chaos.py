"""Whatever fails, training jobs end as they should, leave nothing, and cost few writes.

`ALNAIR_CHAOS=200` lets 200 things happen to 20 jobs; `ALNAIR_CHAOS_SEED` chooses which.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES
from alnair.local.components.components import FULL
from alnair.local.controlplane import LocalCluster
from alnair.local.nodelist import alike
from kit.live.churn import Checker
from kit.live.elastic_chaos import ElasticChaos, writes
from kit.live.scheduler_process import eventually
from kit.live.shared_clusters import SharedClusters

EVENTS = int(os.environ.get("ALNAIR_CHAOS", "20"))
SEED = int(os.environ.get("ALNAIR_CHAOS_SEED", "1"))
IS_FULL = EVENTS >= 100
JOBS = 20 if IS_FULL else 6
PAUSE = 0.8 if IS_FULL else 0.3
#: Seconds that the jobs last.
SHORTEST, LONGEST = (30, 90) if IS_FULL else (4, 10)
NODE_COUNT, GPUS = 6, 4
#: Seconds that a gang may be partly bound.
GANG_GRACE = 45.0
#: Seconds of rest in which nothing may be written.
QUIET = 3.0
#: Requests of the controller for a job that change something, or might: what it begins with and
#: ends with, and some for each event that hits it or restarts the controller.
WRITES = 60 + 10 * EVENTS // JOBS
PATIENCE = 400.0 if IS_FULL else 90.0


@pytest.mark.timeout(EVENTS * PAUSE + 2 * PATIENCE + 120)
async def test_every_job_ends_as_it_should_whatever_happens(
    make_cluster: Callable[..., LocalCluster], shared_clusters: SharedClusters, tmp_path: Path
) -> None:
    cluster = make_cluster("chaos", components=FULL)
    await cluster.up()
    await cluster.add_nodes(alike(NODE_COUNT, GPUS, "T4"))
    audit = shared_clusters.audits / "chaos.log"
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "team"}})
        chaos = ElasticChaos(cluster, client, "team", tmp_path, SEED)
        checker = Checker(cluster, tmp_path, GANG_GRACE)
        wrong: list[str] = []

        async def all_ended() -> bool:
            wrong[:] = await chaos.amiss()
            return not wrong

        async def nothing_held() -> bool:
            wrong[:] = await chaos.holding()
            return not wrong

        async def nothing_left() -> bool:
            wrong[:] = await chaos.left()
            return not wrong

        async def at_rest() -> bool:  # once the last news are told
            rest = time.time()
            await asyncio.sleep(QUIET)
            wrong[:] = [str(one) for one in writes(audit, rest)]
            return not wrong

        try:
            await chaos.make_jobs(JOBS, SHORTEST, LONGEST)
            await chaos.run(EVENTS, PAUSE)
            await chaos.calm()
            for check, seconds in ((all_ended, PATIENCE), (nothing_held, 30)):
                await eventually(check, seconds, lambda: wrong)
            await eventually(at_rest, 30, lambda: f"writes though nothing happens: {wrong}")
            await chaos.delete_jobs()
            await eventually(nothing_left, 40, lambda: f"left: {wrong}")
            found = checker.result()
            assert chaos.alive(), "a process ended by itself"
        finally:
            print("amiss:", wrong, *await chaos.picture(), sep="\n")
            checker.close()
            chaos.close()
    per_job = Counter(job for job, _, _ in writes(audit))
    figures = {
        "seed": SEED,
        **chaos.done,
        "violations": len(found["violations"]),
        "writes_per_job": {
            "max": max(per_job.values()),
            "mean": round(sum(per_job.values()) / len(per_job)),
            "all": sum(per_job.values()),
        },
        "kinds": Counter(what for _, what, _ in writes(audit)).most_common(6),
    }
    print("chaos:", json.dumps(figures))
    assert found["violations"] == []
    assert max(per_job.values()) <= WRITES
