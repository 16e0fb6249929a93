"""End to end throughput: the real kube-scheduler and ours, in turn on the same API server.

For each scheduler in turn, pods are created first; then the scheduler is started, and time runs
from the moment it holds its lease to the last bind, both seen by a watch of this process. After
that its events are waited for, at most 30 s, and only then its CPU time is read: what it writes
late still costs. Both are started with the same freedom (kube-scheduler with its client limits
lifted), both hold a lease.

The cluster is bare (etcd and kube-apiserver): no other component spends CPU or changes pods.
Everything, this process included, shares the machine's cores.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil

from alnair.kube import config
from alnair.kube.client import Client
from alnair.kube.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS
from alnair.local.controlplane import LocalCluster

KUBE, OURS = "kube-scheduler", "alnair-scheduler"
LIMITS_LIFTED = ("--leader-elect=true", "--kube-api-qps=5000", "--kube-api-burst=5000")
EVENTS_PATIENCE = 30.0
STALLED_AFTER = 60.0


class _Meta(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


@dataclass
class Run:
    """One scheduler's run."""

    pods_per_s: float
    cpu_s: float
    peak_rss_mb: float
    events: int
    seconds: float


@dataclass
class Watched:
    """What the watches saw, by this process's clock."""

    bound: dict[str, float] = field(default_factory=dict)
    leads_at: float | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)


def node(index: int) -> dict[str, Any]:
    """A node as scheduler_perf has it, with room for many pods."""
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    name = f"node-{index:05d}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(index: int, kind: str, namespace: str, scheduler: str) -> dict[str, Any]:
    """A pod; of kind distinct, no two requests are alike."""
    step = index if kind == "distinct" else 0
    requests = {"cpu": f"{100 + step % 400}m", "memory": str((500 << 20) + step * 4096)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{index:06d}", "namespace": namespace},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "pause", "resources": {"requests": requests}}],
        },
    }


async def create_all(client: Client, resource: Any, objects: list[dict[str, Any]]) -> None:
    """Create objects, 32 at a time."""
    left = iter(objects)

    async def work() -> None:
        for one in left:
            await client.create(resource, one)

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(work())


async def watch_binds(client: Client, namespace: str, version: str, seen: Watched) -> None:
    """Note when each pod of the namespace is seen bound."""
    while True:
        watch = client.watch(PODS.typed(_Pod), resource_version=version, namespace=namespace)
        async for event in watch:
            if event.object.spec.node_name:
                seen.bound.setdefault(event.object.metadata.name, time.perf_counter())
                seen.news.set()
        # The server ends a watch that it thinks too slow; it goes on where it was.
        version = watch.resource_version


async def watch_lease(client: Client, namespace: str, version: str, seen: Watched) -> None:
    """Note when somebody holds the scheduler's lease."""
    async for event in client.watch(LEASES, resource_version=version, namespace=namespace):
        if event.object["spec"].get("holderIdentity"):
            seen.leads_at = seen.leads_at or time.perf_counter()
            seen.news.set()


async def measure(cluster: LocalCluster, scheduler: str, pods: list[dict[str, Any]]) -> Run:
    """Create the pods, run the scheduler over them, and remove everything again."""
    namespace = pods[0]["metadata"]["namespace"]
    lease_space = "kube-system" if scheduler == KUBE else "alnair-system"
    async with Client(config.load(cluster.kubeconfig())) as client:
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        await create_all(client, PODS, pods)
        # A lease left by the run before would make the scheduler wait for it to expire.
        await client.delete_collection(LEASES, lease_space)
        version = json.loads(await client.raw("GET", LEASES.collection(lease_space)))["metadata"][
            "resourceVersion"
        ]
        seen = Watched()
        watches = [
            asyncio.create_task(watch_binds(client, namespace, version, seen)),
            asyncio.create_task(watch_lease(client, lease_space, version, seen)),
        ]
        await cluster.start(scheduler)
        pid = cluster.pid(scheduler)
        assert pid is not None
        process = psutil.Process(pid)
        while len(seen.bound) < len(pods):
            seen.news.clear()
            done, _ = await asyncio.wait(
                [asyncio.ensure_future(seen.news.wait()), *watches],
                timeout=STALLED_AFTER,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                raise RuntimeError(f"{scheduler} stalled at {len(seen.bound)} of {len(pods)} pods")
            for task in watches:
                if task.done():
                    task.result()
        for task in watches:
            task.cancel()
        events = await drained(client, namespace, len(pods))
        times = process.cpu_times()
        rss = peak_rss_mb(pid)
        await cluster.stop(scheduler, signal.SIGTERM)
        for resource in (PODS, EVENTS):
            await client.delete_collection(resource, namespace, grace_seconds=0)
        assert seen.leads_at is not None
        seconds = max(seen.bound.values()) - seen.leads_at
        return Run(len(pods) / seconds, times.user + times.system, rss, events, seconds)


async def drained(client: Client, namespace: str, expected: int) -> int:
    """Wait until every pod has its Scheduled event, at most 30 s; return how many there are."""
    deadline = time.perf_counter() + EVENTS_PATIENCE
    while True:
        body = await client.raw("GET", EVENTS.collection(namespace), query={"limit": "1"})
        page = json.loads(body)
        count = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
        if count >= expected or time.perf_counter() > deadline:
            return count
        await asyncio.sleep(0.5)


def peak_rss_mb(pid: int) -> float:
    """The most memory that the process ever had (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc: this benchmark needs Linux")


def summarise(runs: list[Run]) -> dict[str, float | int]:
    """Medians over the repeats, and the spread of the headline."""
    rates = [r.pods_per_s for r in runs]
    return {
        "pods_per_s": round(statistics.median(rates), 1),
        "pods_per_s_min": round(min(rates), 1),
        "pods_per_s_max": round(max(rates), 1),
        "cpu_s": round(statistics.median(r.cpu_s for r in runs), 2),
        "peak_rss_mb": round(max(r.peak_rss_mb for r in runs), 1),
        "events": min(r.events for r in runs),
    }


def kube_nodes_scored_pct(nodes: int) -> float:
    """How many nodes kube-scheduler looks for; source: numFeasibleNodesToFind of 1.36."""
    if nodes <= 100:
        return 100.0
    percentage = max(5, 50 - nodes // 125)
    return round(100.0 * max(100, nodes * percentage // 100) / nodes, 1)


async def bench(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run everything on a cluster of its own, and take that down again."""
    with tempfile.TemporaryDirectory(prefix="alnair-bench-") as folder:
        cluster = LocalCluster(
            "bench",
            components=("etcd", "kube-apiserver", KUBE, OURS),
            extra_args={KUBE: LIMITS_LIFTED},
            root=Path(folder),
        )
        try:
            await cluster.up()
            for scheduler in (KUBE, OURS):
                await cluster.stop(scheduler, signal.SIGTERM)
            async with Client(config.load(cluster.kubeconfig())) as client:
                await create_all(client, NODES, [node(i) for i in range(arguments.nodes)])
            runs: dict[str, list[Run]] = {KUBE: [], OURS: []}
            for repeat in range(arguments.repeat):
                # The order alternates, so that neither always meets the fresher server.
                for scheduler in (KUBE, OURS) if repeat % 2 == 0 else (OURS, KUBE):
                    name = "default-scheduler" if scheduler == KUBE else OURS
                    namespace = f"{scheduler}-{repeat}"
                    pods = [pod(i, arguments.kind, namespace, name) for i in range(arguments.pods)]
                    run = await measure(cluster, scheduler, pods)
                    runs[scheduler].append(run)
                    print(
                        f"{scheduler:>16}: {run.pods_per_s:8.1f} pods/s, {run.cpu_s:6.2f} s CPU, "
                        f"{run.peak_rss_mb:6.1f} MB, {run.events} events, {run.seconds:.2f} s",
                        file=sys.stderr,
                        flush=True,
                    )
        finally:
            await cluster.down()
    kube, ours = summarise(runs[KUBE]), summarise(runs[OURS])
    kube["nodes_scored_pct"] = kube_nodes_scored_pct(arguments.nodes)
    ours["nodes_scored_pct"] = 100.0
    return {
        "nodes": arguments.nodes,
        "pods": arguments.pods,
        "kind": arguments.kind,
        "repeat": arguments.repeat,
        "kube_scheduler": kube,
        "alnair": ours,
        "ratio_pods_per_s": round(ours["pods_per_s"] / kube["pods_per_s"], 3),
        "ratio_cpu": round(ours["cpu_s"] / kube["cpu_s"], 3),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.python_version()}",
        "method": "medians; from leadership to the last bind watched; CPU until events are out",
    }


def main() -> None:
    """Parse arguments, run, print one JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--kind", choices=("identical", "distinct"), default="identical")
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    for name in ("nodes", "pods", "repeat"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if arguments.pods > 60 * arguments.nodes:
        parser.error("--pods must be at most 60 per node, or some cannot be placed")
    print(json.dumps(asyncio.run(bench(arguments))))


if __name__ == "__main__":
    main()
