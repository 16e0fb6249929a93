"""Our scheduler and the real kube-scheduler on the same, nearly full nodes."""

import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from pathlib import Path

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import NODES, PODS
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live import recorded_check
from kit.live.recorded_check import story
from kit.live.scheduler_process import StartScheduler, eventually, pod

CHURN_SECONDS = 8
#: How many pods of each scheduler make room, at least, for others to be placed.
GONE = 30
#: CPUs of one pod: 24 of them fill a node.
CPU = 2


async def test_the_crossing_rule_holds_beside_a_foreign_scheduler_at_95_percent_of_the_cpu(
    gpu_cluster: LocalCluster,
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    tmp_path: Path,
) -> None:
    start_scheduler()
    capacity = 0
    for node in (await admin.list(NODES)).items:
        capacity += int(node["status"]["allocatable"]["cpu"])
    full = capacity * 95 // 100 // CPU * CPU
    draw = random.Random(3)
    serial = 0

    async def create(count: int) -> None:
        nonlocal serial
        for _ in range(count):
            serial += 1
            scheduler = names.SCHEDULER if serial % 2 else "default-scheduler"
            await admin.create(
                PODS, pod(namespace, f"p-{serial}", cpu=str(CPU), scheduler=scheduler)
            )

    async def filled() -> bool:
        pods = (await admin.list(PODS, namespace)).items
        await create(full // CPU - len(pods))  # in the place of those that crossed
        return sum("nodeName" in p["spec"] for p in pods) * CPU >= full

    await create(full // CPU)
    await eventually(filled, 60)
    output, record = (tmp_path / "check.json").open("wb"), tmp_path / "record.jsonl"
    watcher = await asyncio.create_subprocess_exec(
        sys.executable,
        recorded_check.__file__,
        str(record),
        "check",
        "--watch",
        "--json",
        f"--kubeconfig={gpu_cluster.kubeconfig()}",
        stdout=output,
    )

    def is_watched() -> bool:
        return record.exists() or watcher.returncode is not None

    try:
        by_scheduler = dict.fromkeys((names.SCHEDULER, "default-scheduler"), 0)
        until = time.monotonic() + CHURN_SECONDS
        while time.monotonic() < until or min(by_scheduler.values()) < GONE or not is_watched():
            # More is asked for than there is, so both reach for the same last cores.
            pods = (await admin.list(PODS, namespace)).items
            placed = [p for p in pods if p["spec"].get("nodeName")]
            for gone in draw.sample(placed, min(len(placed), 12)):
                by_scheduler[gone["spec"]["schedulerName"]] += 1
                with contextlib.suppress(NotFound):  # evicted, because it had crossed
                    await admin.delete(PODS, gone["metadata"]["name"], namespace, grace_seconds=0)
            await create(max(0, capacity * 102 // 100 // CPU - len(pods) + 12))
        await asyncio.sleep(6)  # a crossing must be cleared within 5 s
    finally:
        watcher.send_signal(signal.SIGINT)
        code = await asyncio.wait_for(watcher.wait(), 30)
        output.close()
    result = json.loads((tmp_path / "check.json").read_text().splitlines()[-1])
    assert result["violations"] == [], story(record, result["violations"])
    assert result["ok"]
    assert code == 0
    assert result["bound"] > 0
