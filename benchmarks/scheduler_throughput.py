"""End to end throughput: the real kube-scheduler and ours, in turn on the same API server.

For each scheduler in turn, pods are created first; then the scheduler is started, and time runs
from the moment it holds its lease to the last bind, both seen by a watch of this process. After
that its events are waited for, at most 30 s, and only then its CPU time is read: what it writes
late still costs. Of kinds that come in a burst, the scheduler runs first, and time runs from the
first pod's creation. Both are started with the same freedom (kube-scheduler with its client limits
lifted), both hold a lease.

The cluster is bare (etcd and kube-apiserver): no other component spends CPU or changes pods.
Everything, this process included, shares the machine's cores. What is created is said in
`lib/throughput_kinds.py`.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import ServerTimeout
from alnair.kube.resources import (
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
)
from alnair.local.controlplane import LocalCluster
from lib import machine
from lib.left_behind import ends_when_told
from lib.throughput_kinds import HIGH, KINDS, TIMED, Case, Kind
from lib.watched_pods import WatchedPod

KUBE, OURS = "kube-scheduler", "alnair-scheduler"
LIMITS_LIFTED = ("--leader-elect=true", "--kube-api-qps=5000", "--kube-api-burst=5000")
EVENTS_PATIENCE = 30.0
STALLED_AFTER = 60.0
#: Seconds for one call: to delete thousands of objects takes long.
DELETION_PATIENCE = 90.0
#: Targets: pods per second against kube-scheduler's, what a backlog may cost, seconds of a burst.
RATIO, LOSS_PCT, BURST_SECONDS = 2.0, 5.0, 2.0
#: Seconds from the start of a scheduler to its first bind, with ten pods on each node.
START_SECONDS = 10.0


@dataclass
class Run:
    """One scheduler's run."""

    pods_per_s: float
    cpu_s: float
    peak_rss_mb: float
    events: int
    seconds: float
    #: Until the first bind: of the timed seconds, and from the start of the process.
    first_s: float
    started_s: float


@dataclass
class Watched:
    """What the watches saw, by this process's clock."""

    bound: dict[str, float] = field(default_factory=dict)
    #: Pods whose owner was told that they cannot be placed.
    refused: set[str] = field(default_factory=set)
    leads_at: float | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)


async def create_all(client: Client, resource: Any, objects: list[dict[str, Any]]) -> None:
    """Create objects, 32 at a time."""
    left = iter(objects)

    async def work() -> None:
        for one in left:
            await client.create(resource, one)

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(work())


async def delete_all(client: Client, resource: Any, namespace: str) -> None:
    """Delete what may be more than the API server deletes in the minute that it has for a call."""
    while True:
        with contextlib.suppress(ServerTimeout):
            await client.delete_collection(resource, namespace, grace_seconds=0)
            return


async def watch_binds(client: Client, namespace: str, version: str, seen: Watched) -> None:
    """Note when each pod of the namespace is seen bound."""
    while True:
        watch = client.watch(PODS.typed(WatchedPod), resource_version=version, namespace=namespace)
        async for event in watch:
            name = event.object.metadata.name
            if event.object.spec.node_name:
                if name.startswith(TIMED):
                    seen.bound.setdefault(name, time.perf_counter())
                    seen.news.set()
            elif ("PodScheduled", "False") in {
                (c.type, c.status) for c in event.object.status.conditions
            }:
                seen.refused.add(name)
                seen.news.set()
        # The server ends a watch that it thinks too slow; it goes on where it was.
        version = watch.resource_version


async def watch_lease(client: Client, namespace: str, version: str, seen: Watched) -> None:
    """Note when somebody holds the scheduler's lease."""
    while True:
        watch = client.watch(LEASES, resource_version=version, namespace=namespace)
        async for event in watch:
            if event.object["spec"].get("holderIdentity"):
                seen.leads_at = seen.leads_at or time.perf_counter()
                seen.news.set()
        version = watch.resource_version


async def until(
    seen: Watched,
    watches: list[asyncio.Task[None]],
    process: psutil.Process,
    log: Path,
    done: Callable[[], int],
) -> None:
    """Wait until nothing is missing.

    Args:
        seen: What is told of.
        watches: Who tells.
        process: The scheduler.
        log: Where it writes to.
        done: Says how much is missing.

    Raises:
        RuntimeError: The scheduler has ended, or nothing happens any more.
    """
    before, changed = -1, time.perf_counter()
    while left := done():
        if left != before:
            before, changed = left, time.perf_counter()
        seen.news.clear()
        news = asyncio.ensure_future(seen.news.wait())
        await asyncio.wait([news, *watches], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
        news.cancel()
        for task in watches:
            if task.done():
                task.result()
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            said = await asyncio.to_thread(log.read_text)
            last = "\n".join(said.splitlines()[-20:])
            raise RuntimeError(f"the scheduler has ended, {left} are missing. Its log:\n{last}")
        if time.perf_counter() - changed > STALLED_AFTER:
            raise RuntimeError(f"nothing has happened for {STALLED_AFTER:g} s, {left} are missing")


async def measure(cluster: LocalCluster, scheduler: str, kind: Kind, case: Case) -> Run:
    """Create everything, run the scheduler over the pods, and remove everything again."""
    namespace = case.namespace
    pods, before = kind.pods(case), kind.before(case)
    lease_space = "kube-system" if scheduler == KUBE else "alnair-system"
    access = client_config.load(cluster.kubeconfig())
    async with Client(access, timeout=DELETION_PATIENCE) as client:
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        for group in kind.groups(case):
            await client.create(PODGROUPS, group, namespace)
        await create_all(client, PODS, before)
        if not kind.burst:
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
        begun = time.perf_counter()
        await cluster.start(scheduler)
        pid = cluster.pid(scheduler)
        assert pid is not None
        process = psutil.Process(pid)
        log = cluster.layout.log(scheduler)
        await until(seen, watches, process, log, lambda: int(seen.leads_at is None))
        start = seen.leads_at
        if kind.burst:
            await until(seen, watches, process, log, lambda: len(before) - len(seen.refused))
            start = time.perf_counter()
            await create_all(client, PODS, pods)
        await until(seen, watches, process, log, lambda: len(pods) - len(seen.bound))
        for task in watches:
            task.cancel()
        events = await drained(client, namespace, len(pods))
        times = process.cpu_times()
        rss = peak_rss_mb(pid)
        await cluster.stop(scheduler, signal.SIGTERM)
        for resource in (PODS, EVENTS):
            await delete_all(client, resource, namespace)
        assert start is not None
        seconds = max(seen.bound.values()) - start
        first = min(seen.bound.values())
        return Run(
            pods_per_s=len(pods) / seconds,
            cpu_s=times.user + times.system,
            peak_rss_mb=rss,
            events=events,
            seconds=seconds,
            first_s=first - start,
            started_s=first - begun,
        )


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
        "seconds": round(statistics.median(r.seconds for r in runs), 3),
        "first_s": round(statistics.median(r.first_s for r in runs), 3),
        "started_s": round(statistics.median(r.started_s for r in runs), 3),
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
    """Run everything on a cluster of its own, and take that down again, also when told to end."""
    ends_when_told()
    kind = KINDS[arguments.kind]
    schedulers = (OURS,) if kind.alone else (KUBE, OURS)
    # With a backlog and without, in turn; other kinds have none.
    backlogs = (0, arguments.backlog) if arguments.kind == "backlog" else (0,)
    runs: dict[tuple[str, int], list[Run]] = {(s, b): [] for s in schedulers for b in backlogs}
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
            async with Client(client_config.load(cluster.kubeconfig())) as client:
                await create_all(client, NODES, kind.nodes(arguments.nodes))
                await client.create(PRIORITY_CLASSES, {"metadata": {"name": HIGH}, "value": 1000})
            for repeat in range(arguments.repeat):
                # The order alternates, so that neither always meets the fresher server.
                turns = list(runs) if repeat % 2 == 0 else list(reversed(runs))
                for scheduler, backlog in turns:
                    case = Case(
                        arguments.nodes,
                        arguments.pods,
                        backlog,
                        f"{scheduler}-{repeat}-{backlog}",
                        "default-scheduler" if scheduler == KUBE else OURS,
                    )
                    run = await measure(cluster, scheduler, kind, case)
                    runs[scheduler, backlog].append(run)
                    print(
                        f"{scheduler:>16}: {run.pods_per_s:8.1f} pods/s, {run.cpu_s:6.2f} s CPU, "
                        f"{run.peak_rss_mb:6.1f} MB, {run.events} events, {run.seconds:.2f} s, "
                        f"the first after {run.first_s:.3f} s, {run.started_s:.2f} s from its start"
                        + (f", backlog {backlog}" if backlog else ""),
                        file=sys.stderr,
                        flush=True,
                    )
        finally:
            await cluster.down()
    return report(arguments, runs)


def report(arguments: argparse.Namespace, runs: dict[tuple[str, int], list[Run]]) -> dict[str, Any]:
    """Put the runs side by side, with the targets of the kind."""
    kind = KINDS[arguments.kind]
    start = "the first creation" if kind.burst else "leadership"
    found: dict[str, Any] = {
        "nodes": arguments.nodes,
        "pods": arguments.pods,
        "kind": arguments.kind,
        "repeat": arguments.repeat,
    }
    last = max(backlog for _, backlog in runs)
    ours = summarise(runs[OURS, last])
    found["alnair"] = ours | {"nodes_scored_pct": 100.0}
    targets: dict[str, Any] = {}
    if kind.alone:
        found["kube_scheduler"] = kind.alone
    else:
        kube = summarise(runs[KUBE, last])
        found["kube_scheduler"] = kube | {"nodes_scored_pct": kube_nodes_scored_pct(found["nodes"])}
        found["ratio_pods_per_s"] = round(ours["pods_per_s"] / kube["pods_per_s"], 3)
        found["ratio_cpu"] = round(ours["cpu_s"] / kube["cpu_s"], 3)
        if arguments.kind in ("identical", "distinct"):
            targets["ratio_pods_per_s"] = {
                "at_least": RATIO,
                "met": found["ratio_pods_per_s"] >= RATIO,
            }
    if last:
        found["backlog"] = last
        for name, scheduler in (("loss_pct", OURS), ("kube_scheduler_loss_pct", KUBE)):
            without = summarise(runs[scheduler, 0])["pods_per_s"]
            with_it = summarise(runs[scheduler, last])["pods_per_s"]
            found[name] = round(100 * (1 - with_it / without), 1)
        targets["loss_pct"] = {"below": LOSS_PCT, "met": found["loss_pct"] < LOSS_PCT}
    if arguments.kind == "start":
        started = ours["started_s"]
        targets["started_s"] = {"below": START_SECONDS, "met": started < START_SECONDS}
    if arguments.kind == "fractions":
        targets["seconds"] = {"below": BURST_SECONDS, "met": ours["seconds"] < BURST_SECONDS}
    return found | {
        "targets": targets,
        "machine": machine.describe(),
        "method": f"medians; from {start} to the last bind watched; CPU until events are out",
    }


def main() -> None:
    """Parse arguments, run, print one JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--kind", choices=list(KINDS), default="identical")
    parser.add_argument("--nodes", type=int, help="1000; 100 for fractions")
    parser.add_argument("--pods", type=int, help="by kind: 40 to 3000")
    parser.add_argument(
        "--backlog", type=int, help="parked pods of kind backlog; two per node, at most 10000"
    )
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    kind = KINDS[arguments.kind]
    arguments.nodes = kind.default_nodes if arguments.nodes is None else arguments.nodes
    arguments.pods = kind.default_pods if arguments.pods is None else arguments.pods
    if arguments.backlog is None:
        arguments.backlog = min(10_000, 2 * arguments.nodes)
    for name in ("nodes", "pods", "backlog", "repeat"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if arguments.pods > kind.most_per_node * arguments.nodes:
        parser.error(
            f"--pods must be at most {kind.most_per_node:g} per node for {arguments.kind}, "
            "or some cannot be placed"
        )
    try:
        print(json.dumps(asyncio.run(bench(arguments))))
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
    except RuntimeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
