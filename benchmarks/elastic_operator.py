"""How soon the operator of training jobs acts: on a real API server with simulated nodes.

    python benchmarks/elastic_operator.py [--jobs N] [--nodes N] [--rate R] [--more M] [--repeat K]

The first job alone has the operator read the cluster (`first`). Then N elastic jobs of one to three
workers arrive at R a second (`arrive`), and when all of them run M more (`beside`), one after the
other. Each time is from before the creation is sent to when this
process sees the object in a watch; `group` and `workers` are the PodGroup and the StatefulSet that
the operator makes, `pod` and `running` are what the other components and kwok do with them. Then
as many jobs get another `targetReplicas` as came late (`scale`: until the StatefulSet says so). At
last all are deleted, and until nothing of them is left is timed. `requests_per_job` are what the
API server answered while N jobs arrived, until all ran, whoever asked, and `events_per_job` who
told what of them.

GPUs suffice for all, so that nobody waits for another. All processes share the machine's cores. The
run fails if a job does not run in time, or if anything is left. The last line is JSON.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from prometheus_client.parser import text_string_to_metric_families

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import ConnectionFailed
from alnair.kube.resources import (
    ELASTIC_HOROVOD_JOBS,
    EVENTS,
    NAMESPACES,
    PODGROUPS,
    PODS,
    STATEFUL_SETS,
    Manifest,
)
from alnair.local.components.components import ALNAIR_CONTROLLER, FULL
from alnair.local.controlplane import LocalCluster
from alnair.local.nodelist import alike
from lib import machine

SPACE = "bench"
GPUS = 8
#: Workers of a job at least, for now, and at most.
LEAST, NOW, MOST = 1, 2, 3
#: Seconds without any news after which a run has failed.
PATIENCE = 120.0
#: Operator's reaction, 99 of 100 jobs: milliseconds.
LIMIT_MS = 500.0
#: A pod of a Job ends at once on simulated nodes, but for this.
LASTS = {"annotations": {"ai.centaurus.io/simulated-duration": "360000s"}}


def manifest(name: str) -> Manifest:
    """An elastic job, whose launcher does not end."""
    workers = {"minReplicas": LEAST, "maxReplicas": MOST, "targetReplicas": NOW, "gpusPerWorker": 1}
    return {
        "apiVersion": ELASTIC_HOROVOD_JOBS.api_version,
        "kind": ELASTIC_HOROVOD_JOBS.kind,
        "metadata": {"name": name},
        "spec": {
            "launcherSpec": {"image": "example/it:1", "pythonCommand": ["python", "a.py"], **LASTS},
            "workersSpec": {"image": "example/it:1", **workers, **LASTS},
        },
    }


class Seen:
    """When this process saw what became of each job, by its own clock."""

    def __init__(self) -> None:
        self.created: dict[str, float] = {}
        self.scaled: dict[str, float] = {}
        self.at: dict[str, dict[str, float]] = {
            what: {} for what in ("group", "workers", "pod", "running", "resized")
        }
        self.news = asyncio.Event()

    def note(self, what: str, job: str) -> None:
        """Note that this was seen of a job; the first time counts."""
        self.at[what].setdefault(job, time.perf_counter())
        self.news.set()

    def milliseconds(self, what: str, jobs: Sequence[str]) -> list[float]:
        """How long it took with each of these jobs, in order of length."""
        since = self.scaled if what == "resized" else self.created
        return sorted(1e3 * (self.at[what][job] - since[job]) for job in jobs)


async def follow(client: Client, resource: Any, take: Callable[[Manifest], None]) -> None:
    """Tell of each object of the namespace, as it is and as it becomes."""
    listed = await client.list(resource, SPACE)
    version = listed.resource_version
    while True:
        watch = client.watch(resource, resource_version=version, namespace=SPACE)
        async for event in watch:
            if event.type != "DELETED":
                take(event.object)
        # The server ends a watch that it thinks too slow; it goes on where it was.
        version = watch.resource_version


def takers(seen: Seen) -> dict[Any, Callable[[Manifest], None]]:
    """What is noted of each kind."""

    def job_of(one: Manifest) -> str:
        return str((one["metadata"].get("labels") or {}).get(ELASTIC_HOROVOD_JOBS.kind, ""))

    def workers(one: Manifest) -> None:
        job = job_of(one)
        seen.note("workers", job)
        if job in seen.scaled and one["spec"].get("replicas") == MOST:
            seen.note("resized", job)

    def running(one: Manifest) -> None:
        status = one.get("status") or {}
        if status.get("phase") == "Running":
            seen.note("running", one["metadata"]["name"])

    return {
        PODGROUPS: lambda one: seen.note("group", job_of(one)),
        STATEFUL_SETS: workers,
        PODS: lambda one: seen.note("pod", job_of(one)),
        ELASTIC_HOROVOD_JOBS: running,
    }


async def until(seen: Seen, done: Callable[[], int], what: str) -> None:
    """Wait until nothing is missing; `done` says how much is."""
    while left := done():
        seen.news.clear()
        try:
            async with asyncio.timeout(PATIENCE):
                await seen.news.wait()
        except TimeoutError:
            sys.exit(f"nothing has happened for {PATIENCE:g} s, and {left} jobs {what}")


async def create(client: Client, seen: Seen, name: str) -> None:
    """Make a job."""
    seen.created[name] = time.perf_counter()
    await client.create(ELASTIC_HOROVOD_JOBS, manifest(name), SPACE)


async def arrive(client: Client, seen: Seen, jobs: Sequence[str], rate: float) -> None:
    """Make jobs at a rate, whatever the API server takes for each."""
    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(jobs):
            await asyncio.sleep(max(0.0, begin + number / rate - time.perf_counter()))
            group.create_task(create(client, seen, name))
    await until(seen, lambda: missing(seen, "running", jobs), "do not run")


def missing(seen: Seen, what: str, jobs: Sequence[str]) -> int:
    """Return of how many jobs this was not seen yet."""
    return sum(job not in seen.at[what] for job in jobs)


async def one_by_one(
    seen: Seen, what: str, jobs: Sequence[str], act: Callable[[str], Awaitable[Any]]
) -> None:
    """Do something to each job, and wait until it is seen, before the next is done."""
    for name in jobs:
        await act(name)
        await until(seen, partial(missing, seen, what, [name]), f"have no {what}")


async def requests(client: Client) -> "Counter[str]":
    """Return how many requests the API server has answered, by verb and resource."""
    found: Counter[str] = Counter()
    page = (await client.raw("GET", "/metrics")).decode()
    for family in text_string_to_metric_families(page):
        for one in family.samples if family.name == "apiserver_request" else ():
            if one.name.endswith("_total") and one.labels["verb"] not in ("WATCH", "LIST"):
                what = (one.labels["verb"], one.labels["resource"], one.labels["subresource"])
                found["/".join(filter(None, what))] += int(one.value)
    return found


async def events(client: Client) -> "Counter[str]":
    """Return how many events there are, by who told them and the reason."""
    found: Counter[str] = Counter()
    for one in (await client.list(EVENTS, SPACE)).items:
        source = (one.get("source") or {}).get("component") or one.get("reportingComponent")
        found[f"{source} {one['reason']}"] += 1
    return found


async def end(client: Client) -> float:
    """Delete all jobs; returns the seconds until nothing of them is left."""
    begin = time.perf_counter()
    while True:
        try:
            await client.delete_collection(ELASTIC_HOROVOD_JOBS, SPACE)
            break
        except ConnectionFailed:
            continue  # a thousand take longer than one request may
    for resource in (PODS, STATEFUL_SETS, PODGROUPS):
        while (await client.list(resource, SPACE)).items:
            if time.perf_counter() - begin > 10 * PATIENCE:
                sys.exit(f"{resource.plural} of deleted jobs are left")
            await asyncio.sleep(0.2)
    return time.perf_counter() - begin


def figures(found: list[float]) -> dict[str, float]:
    """The median, the value that 99 of 100 are not above, and the largest."""
    p99 = found[min(len(found) - 1, -(-99 * len(found) // 100) - 1)]
    p50 = statistics.median(found)
    return {"p50": round(p50), "p99": round(p99), "max": round(found[-1])}


async def measure(cluster: LocalCluster, options: argparse.Namespace) -> dict[str, Any]:
    """Let all jobs come, change and go; returns milliseconds by stage and what was waited for."""
    first = [f"job-{number:04}" for number in range(options.jobs)]
    late = [f"late-{number:04}" for number in range(options.more)]
    processes = {name: psutil.Process(one.pid) for name, one in cluster.running().items()}
    async with Client(client_config.load(cluster.kubeconfig()), max_connections=64) as client:
        seen = Seen()
        watches = [
            asyncio.create_task(follow(client, resource, take))
            for resource, take in takers(seen).items()
        ]
        await arrive(client, seen, ["first"], options.rate)
        before = {name: process.cpu_times() for name, process in processes.items()}
        asked = await requests(client)
        await arrive(client, seen, first, options.rate)
        report("arrive", seen, first)
        asked = await requests(client) - asked
        told = await events(client)
        await one_by_one(seen, "running", late, lambda name: create(client, seen, name))
        report("beside", seen, late)

        async def scale(name: str) -> None:
            seen.scaled[name] = time.perf_counter()
            spec: Manifest = {"spec": {"workersSpec": {"targetReplicas": MOST}}}
            await client.merge_patch(ELASTIC_HOROVOD_JOBS, name, spec, SPACE)

        chosen = [*late, *first][: max(1, options.more)]
        await one_by_one(seen, "resized", chosen, scale)
        cpu = {
            name: round(now.user + now.system - before[name].user - before[name].system, 2)
            for name, process in processes.items()
            for now in (process.cpu_times(),)
        }
        for task in watches:
            task.cancel()
        ended = await end(client)
        steps = ("group", "workers", "pod", "running")
        return {
            "first_ms": {one: round(seen.milliseconds(one, ["first"])[0]) for one in steps},
            "arrive_ms": {one: figures(seen.milliseconds(one, first)) for one in steps},
            "beside_ms": {one: figures(seen.milliseconds(one, late)) for one in steps},
            "scale_ms": figures(seen.milliseconds("resized", chosen)),
            "all_gone_s": round(ended, 1),
            "requests_per_job": {
                what: round(count / len(first), 1) for what, count in asked.most_common(20)
            },
            "events_per_job": {
                what: round(count / (len(first) + 1), 1) for what, count in told.most_common(20)
            },
            "cpu_s": cpu,
            "controller_rss_mb": round(processes[ALNAIR_CONTROLLER].memory_info().rss / 2**20),
        }


def report(stage: str, seen: Seen, jobs: Sequence[str]) -> None:
    """Say how a stage went."""
    found = figures(seen.milliseconds("workers", jobs))
    print(f"{stage}: {len(jobs)} jobs, StatefulSet after {found} ms", file=sys.stderr, flush=True)


async def bench(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything on a cluster of its own, and take that down again."""
    runs = []
    with tempfile.TemporaryDirectory(prefix="alnair-bench-") as folder:
        cluster = LocalCluster("bench", components=FULL, scheduler=True, root=Path(folder))
        try:
            await cluster.up()
            await cluster.add_nodes(alike(options.nodes, GPUS, "T4"))
            async with Client(client_config.load(cluster.kubeconfig())) as client:
                await client.create(NAMESPACES, {"metadata": {"name": SPACE}})
            for _ in range(options.repeat):
                runs.append(await measure(cluster, options))
                print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
        finally:
            await cluster.down()
    worst = {
        stage: max(run[stage]["workers"]["p99"] for run in runs)
        for stage in ("arrive_ms", "beside_ms")
    }
    return {
        "jobs": options.jobs,
        "more": options.more,
        "nodes": options.nodes,
        "rate": options.rate,
        "runs": runs,
        "targets": {
            f"{stage}.workers.p99": {"below": LIMIT_MS, "met": found < LIMIT_MS}
            for stage, found in worst.items()
        },
        "machine": machine.describe(),
    }


def main() -> None:
    """Parse arguments, run, print one JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--nodes", type=int, help="of 8 GPUs; as many as all jobs need")
    parser.add_argument("--rate", type=float, default=10.0, help="jobs a second")
    parser.add_argument("--more", type=int, default=20, help="jobs that come when all others run")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    needed = -(-(1 + options.jobs + options.more) * MOST // GPUS) + 1
    options.nodes = options.nodes or needed
    for name in ("jobs", "nodes", "rate", "more", "repeat"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be more than 0")
    if options.nodes < needed:
        parser.error(f"--nodes must be at least {needed}, so that all jobs have their GPUs")
    print(json.dumps(asyncio.run(bench(options))))


if __name__ == "__main__":
    main()
