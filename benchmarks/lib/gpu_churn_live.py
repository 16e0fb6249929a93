"""The churn of `gpu_churn.py` on a real API server, with real schedulers in turn."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Final

from alnair.kube.client import Client
from alnair.kube.objects import simulated_nodes
from alnair.kube.resources import EVENTS, NODES, PODS
from alnair.local.controlplane import LocalCluster
from alnair.local.nodelist import alike
from lib.gpu_churn import NODE, Case, Tally, manifest
from lib.kube_gpu_profiles import configuration
from lib.watched_pods import WatchedPod

KUBE, OURS = "kube-scheduler", "alnair-scheduler"
#: Seconds after which a step that nothing happens in is given up.
STALLED_AFTER: Final = 60.0
_NAMESPACE: Final = "default"
_WRITTEN: Final = "2026-01-01T00:00:00Z"


class Watched:
    """What a watch saw of the pods: nodes by name, who was refused, who is gone."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.refused: set[str] = set()
        self.gone: set[str] = set()
        self._news = asyncio.Event()

    async def follow(self, client: Client, version: str) -> None:
        """Follow the pods for ever."""
        while True:
            watch = client.watch(
                PODS.typed(WatchedPod), resource_version=version, namespace=_NAMESPACE
            )
            async for event in watch:
                self._note(event.type, event.object)
            # The server ends a watch that it thinks too slow; it goes on where it was.
            version = watch.resource_version

    def _note(self, kind: str, pod: WatchedPod) -> None:
        name = pod.metadata.name
        if kind == "DELETED":
            self.gone.add(name)
        elif pod.spec.node_name:
            self.bound[name] = pod.spec.node_name
        elif any((c.type, c.status) == ("PodScheduled", "False") for c in pod.status.conditions):
            self.refused.add(name)
        self._news.set()

    async def until(self, pods: Collection[str], *told: Collection[str]) -> None:
        """Wait until each of the pods is in one of the collections, such as `bound`.

        Raises:
            RuntimeError: nothing happened for a minute.
        """
        while left := [pod for pod in pods if not any(pod in each for each in told)]:
            self._news.clear()
            try:
                async with asyncio.timeout(STALLED_AFTER):
                    await self._news.wait()
            except TimeoutError:
                raise RuntimeError(
                    f"nothing has happened for {STALLED_AFTER:g} s, and {len(left)} pods are left, "
                    f"such as {left[0]}: look into the log of the scheduler"
                ) from None


@contextlib.asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[LocalCluster]:
    """A bare cluster with both schedulers: no other component changes pods or nodes."""
    found = LocalCluster("bench", components=("etcd", "kube-apiserver", KUBE, OURS), root=folder)
    try:
        await found.up()
        path = folder / "kube-scheduler.json"
        path.write_text(json.dumps(configuration(found.kubeconfig(KUBE))))
        await found.stop(KUBE)
        await found.start(KUBE, extra_args=[f"--config={path}"])
        yield found
    finally:
        await found.down()


async def have_nodes(client: Client, count: int, model: str) -> None:
    """Have so many nodes of 8 GPUs, and no others."""
    wanted = {node.name: node for node in alike(count, NODE, model)}
    there = {node["metadata"]["name"] for node in (await client.list(NODES)).items}
    for name in there - wanted.keys():
        await client.delete(NODES, name)
    for name in wanted.keys() - there:
        await client.create(NODES, simulated_nodes.manifest(wanted[name], _WRITTEN))


async def run(client: Client, case: Case, scheduler: str) -> dict[str, float]:
    """Let a scheduler place the pods of the case, and return the means.

    Pods are created one after another, so that all schedulers see them in the same order.
    """
    listed = json.loads(await client.raw("GET", PODS.collection(_NAMESPACE)))
    seen, tally = Watched(), Tally(case.nodes)
    watch = asyncio.create_task(seen.follow(client, listed["metadata"]["resourceVersion"]))
    there: set[str] = set()

    async def delete(pods: Collection[str]) -> None:
        async with asyncio.TaskGroup() as group:
            for pod in pods:
                group.create_task(client.delete(PODS, pod, _NAMESPACE, grace_seconds=0))
        await seen.until(pods, seen.gone)
        there.difference_update(pods)

    try:
        for step in case.steps:
            for pod, gpus in step.arrivals.items():
                await client.create(PODS, manifest(pod, gpus, scheduler, _NAMESPACE))
                there.add(pod)
            await seen.until(step.arrivals, seen.bound, seen.refused)
            await delete(tally.step(step.arrivals, seen.bound))
            leaving = [pod for pod in step.departures if pod in there]
            for pod in leaving:
                tally.gone(pod)
            await delete(leaving)
        await delete(sorted(there))
    finally:
        watch.cancel()
    await client.delete_collection(EVENTS, _NAMESPACE)
    return tally.result()
