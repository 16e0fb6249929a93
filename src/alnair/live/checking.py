"""Feeds the checker from a real API server: one look, or every change."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, Final

from alnair.checker import cluster as whole
from alnair.checker import registry
from alnair.checker.cluster import Finding
from alnair.checker.objects.state import CheckedCluster, cluster_of
from alnair.checker.over_time.live_check import Change, Watching
from alnair.checker.violation import Violation
from alnair.kube.client import Client
from alnair.kube.errors import KubeError, NotFound
from alnair.kube.resources import (
    CLAIMS,
    ELASTIC_QUOTAS,
    LEGACY_PODGROUPS,
    NODES,
    PERSISTENT_VOLUMES,
    PODGROUPS,
    PODS,
    Manifest,
    Resource,
)
from alnair.live.list_and_watch import Batch, follow

#: What may be wrong for a moment only is looked at again after so long (seconds).
SECOND_LOOK: Final = 5.5
#: Seconds between looks at what only time decides, and between requests that are timed.
_TICK: Final = 0.25
_GROUPS: Final = (PODGROUPS, LEGACY_PODGROUPS)
#: Rules about objects that are not read at one moment.
_OF_SEVERAL_LISTS: Final = ("gang-topology", "volume-node")


class UnreadError(Exception):
    """The watch ended before all was read, so it proves nothing."""


async def _listed(client: Client, resource: Resource[Manifest]) -> list[Manifest]:
    try:
        return (await client.list(resource)).items
    except NotFound:
        return []  # the kind is not installed: there are no objects of it


async def _look(client: Client, ours: frozenset[str]) -> CheckedCluster:
    # Nodes last: each pod's node is then among them, unless it is really gone.
    pods = (await client.list(PODS)).items
    groups = [group for kind in _GROUPS for group in await _listed(client, kind)]
    claims, volumes = await _listed(client, CLAIMS), await _listed(client, PERSISTENT_VOLUMES)
    nodes = (await client.list(NODES)).items
    return cluster_of(nodes, pods, groups, ours, claims, volumes)


async def check(
    client: Client,
    ours: frozenset[str],
    namespaces: frozenset[str],
    expected: int | None,
    second_look: float = SECOND_LOOK,
) -> Finding:
    """Look at the cluster once.

    What the contract allows for a moment (a gang that is being bound, two schedulers that have
    crossed) counts only if it is still there at a second look.
    """
    cluster = await _look(client, ours)
    first = whole.check(cluster, namespaces, expected)
    brief = {v.key for v in first.violations if _may_pass(cluster, v)}
    if not brief:
        return first
    await asyncio.sleep(second_look)
    second = whole.check(await _look(client, ours), namespaces, expected)
    still = {v.key for v in second.violations}
    first.violations[:] = [v for v in first.violations if v.key not in brief or v.key in still]
    return first


def _may_pass(cluster: CheckedCluster, violation: Violation) -> bool:
    if violation.rule in {*registry.GANG_RULES, *_OF_SEVERAL_LISTS, "node-exists"}:
        return True
    on_node = (pod for pod in cluster.pods if pod.node == violation.node and pod.holds)
    return violation.rule in registry.NODE_RULES and any(not pod.ours for pod in on_node)


async def watch(
    client: Client,
    watching: Watching,
    stop: Callable[[], Awaitable[object]],
    tell: Callable[[Violation], None],
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Judge every instant until `stop` returns.

    Args:
        client: An open client.
        watching: What judges.
        stop: Awaited; the watch ends when it returns.
        tell: Called for each violation as it is confirmed.
        begun: Called once all is read: from then on nothing is missed.

    Raises:
        UnreadError: It ended before all was read, so it proves nothing.
    """
    reported = 0
    read = {kind.collection(): asyncio.Event() for kind in (NODES, PODS, ELASTIC_QUOTAS, *_GROUPS)}

    async def say_begun() -> None:
        await asyncio.gather(*(one.wait() for one in read.values()))
        begun()

    async def run() -> None:
        nodes, listed = follow(client, NODES), read[NODES.collection()]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_feed(nodes, listed, lambda b, now: watching.nodes(*_parts(b), now)))
            tasks.create_task(_time_requests(client, watching))
            tasks.create_task(say_begun())
            for kind in _GROUPS:
                take = partial(watching.gangs.take, kind.api_version)
                tasks.create_task(_follow_custom(client, kind, take, read[kind.collection()]))
            quotas, listed_quotas = ELASTIC_QUOTAS, read[ELASTIC_QUOTAS.collection()]
            follower = _follow_custom(client, quotas, watching.quotas.take, listed_quotas)
            tasks.create_task(follower)
            # Pods after nodes, so that no pod is on a node that is not known yet.
            await listed.wait()
            pods = follow(client, PODS)
            tasks.create_task(
                _feed(
                    pods,
                    read[PODS.collection()],
                    lambda b, now: watching.pods(*_parts(b), now, b.earliest),
                )
            )

    work = asyncio.create_task(run())
    end = asyncio.ensure_future(stop())
    try:
        while not (work.done() or end.done()):
            await asyncio.wait((work, end), timeout=_TICK, return_when=asyncio.FIRST_COMPLETED)
            watching.tick(time.monotonic())
            for violation in watching.violations[reported:]:
                tell(violation)
            reported = len(watching.violations)
        if work.done():
            work.result()
    finally:
        work.cancel()
        end.cancel()
        await asyncio.gather(work, end, return_exceptions=True)
    if missing := [path for path, listed in read.items() if not listed.is_set()]:
        raise UnreadError(f"the watch ended before {', '.join(missing)} had been read")
    watching.finish(time.monotonic())
    for violation in watching.violations[reported:]:
        tell(violation)


async def _time_requests(client: Client, watching: Watching) -> None:
    """Ask the server for something small again and again, to see how long it takes just now."""
    while True:
        watching.requests.sent(time.monotonic())
        # The watches judge whether errors end it all; here one is an answer, too.
        with contextlib.suppress(KubeError):
            await client.raw("GET", NODES.collection(), query={"limit": "1"})
        watching.requests.answered(time.monotonic())
        await asyncio.sleep(_TICK)


async def _follow_custom(
    client: Client,
    kind: Resource[Manifest],
    take: Callable[[list[Manifest] | None, list[Change], float], None],
    listed: asyncio.Event,
) -> None:
    try:
        await _feed(follow(client, kind), listed, lambda b, now: take(*_parts(b), now))
    except NotFound:
        listed.set()  # the kind is not installed: there are no objects of it


async def _feed(
    batches: AsyncIterator[Batch[Manifest]],
    listed: asyncio.Event,
    take: Callable[[Batch[Manifest], float], None],
) -> None:
    async for batch in batches:
        take(batch, batch.arrived)
        listed.set()


def _parts(batch: Batch[dict[str, Any]]) -> tuple[list[Manifest] | None, list[Change]]:
    return batch.listed, [(event.type, event.object) for event in batch.events]
