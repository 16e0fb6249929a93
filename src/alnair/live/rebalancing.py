"""Carries out a rebalancing: reads the cluster into an engine, and moves pods one at a time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from alnair.kube.client import Client
from alnair.kube.errors import NotFound, TooManyRequests
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.pod_groups.gang_labels import group_of
from alnair.kube.resources import NODES, PODS, Manifest
from alnair.live.engine_feed import Feed
from alnair.live.training import rebalanced
from alnair.live.training.finding import JobError
from alnair.scheduler.advice.rebalance import Move, Rebalance, RebalanceOutcome
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile

#: Seconds to read the cluster.
_READ: Final = 60.0
_LOOK_AGAIN: Final = 0.5

Tell = Callable[[str], None]


class MoveError(Exception):
    """A move could not be completed; the text says which, why, and what to do."""


async def learn(client: Client, profiles: Sequence[Profile]) -> Rebalance:
    """Read the cluster, to plan with these profiles.

    Raises:
        TimeoutError: it could not be read in a minute.
        KubeError: it cannot be read.
    """
    engine = Engine(profiles)
    engine.learn(await read(client, profiles), time.time())
    return Rebalance(engine.view)


async def plan(
    client: Client, profiles: Sequence[Profile], free_gpus: int | None, node: str, most: int
) -> RebalanceOutcome:
    """Read the cluster, and plan moves that free GPUs or a node.

    Args:
        client: An open client.
        profiles: of the scheduler.
        free_gpus: so many whole GPUs of a node; None: all pods leave it.
        node: which; empty: any.
        most: moves at most.

    Raises:
        TimeoutError: it could not be read in a minute.
    """
    books = await learn(client, profiles)
    if free_gpus is None:
        return books.empty(node, most)
    return books.free_gpus(free_gpus, most, node)


async def read(client: Client, profiles: Sequence[Profile]) -> list[events.Event]:
    """Return all that exists and that these profiles decide by.

    Raises:
        TimeoutError: it could not be read in a minute.
        KubeError: the API server says at once that nodes or pods cannot be read.
    """
    # Who follows a cluster tries again until it may: for a look, that is a minute of tries.
    for kind in (NODES, PODS):
        await client.raw("GET", kind.collection(), query={"limit": "1"})
    feed = Feed(client, {kind for profile in profiles for kind in profile.kinds()})
    following = asyncio.create_task(feed.run())
    try:
        async with asyncio.timeout(_READ):
            await feed.synced()
        return list(feed.everything())
    finally:
        following.cancel()


async def carry_out(
    client: Client, node: str, moves: tuple[Move, ...], seconds: float, tell: Tell
) -> None:
    """Move pods one at a time; the node takes no pods meanwhile, so that none comes back.

    Nor does another node that a pod leaves to make room there, while that pod moves.

    Args:
        client: An open client.
        node: that is to be freed.
        moves: of pods on it.
        seconds: to wait for each replacement.
        tell: takes a sentence about each step.

    Raises:
        MoveError: a move did not succeed; those before it did.
    """
    migrated: set[str] = set()
    async with _cordoned(client, node):
        for move in moves:
            if move.uid in migrated:
                continue
            async with _cordoned(client, move.source):
                whole = await rebalanced.job_of(client, move, moves)
                if whole is None:
                    await _move(client, move, seconds, tell)
                else:
                    # Its training is told before its workers go.
                    await _migrate(client, whole, move.source, seconds, tell)
                    migrated |= whole.workers


@contextlib.asynccontextmanager
async def _cordoned(client: Client, node: str) -> AsyncIterator[None]:
    """Cordon a node for a while, unless it is cordoned already."""
    found = await client.get(NODES, node)
    if found["spec"].get("unschedulable"):
        yield
        return
    try:
        # In here: without an answer, or cancelled before it, it may be done.
        await client.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
        yield
    finally:
        await client.merge_patch(NODES, node, {"spec": {"unschedulable": None}})


async def _migrate(
    client: Client, whole: rebalanced.WholeJob, node: str, seconds: float, tell: Tell
) -> None:
    now, patience = rfc3339(time.time()), seconds * len(whole.workers)
    try:
        await rebalanced.migrate(client, whole.job, node, now, patience, tell)
    except JobError as error:
        raise MoveError(str(error)) from None


async def _move(client: Client, move: Move, seconds: float, tell: Tell) -> None:
    pod = f"{move.namespace}/{move.name}"
    try:
        found = await client.get(PODS, move.name, move.namespace)
    except NotFound:
        tell(f"{pod} is gone already")
        return
    if found["metadata"]["uid"] != move.uid:
        raise MoveError(f"{pod} was replaced since the plan was made: plan again")
    owner = _owner(found)
    # The members of a gang work together: the next one leaves when this one is back at work.
    gang = group_of(found["metadata"].get("labels") or {}, None)
    before = {p["metadata"]["uid"] for p in await _owned(client, move.namespace, owner)}
    deadline = time.monotonic() + seconds
    while True:
        try:
            await client.evict(move.namespace, move.name, move.uid)
            break
        except NotFound:
            break
        except TooManyRequests as error:
            if time.monotonic() > deadline:
                raise MoveError(
                    f"{pod} could not be evicted within {seconds:g} s: {error}; try again when its "
                    "disruption budget allows it"
                ) from None
            await asyncio.sleep(_LOOK_AGAIN)
    while True:
        for other in await _owned(client, move.namespace, owner):
            node = other["spec"].get("nodeName")
            starting = gang and (other.get("status") or {}).get("phase") != "Running"
            if other["metadata"]["uid"] not in before and node and not starting:
                name = other["metadata"]["name"]
                tell(f"{pod} left {move.source}; {name} is on {node}")
                return
        if time.monotonic() > deadline:
            raise MoveError(
                f"{pod} was evicted and no replacement was {'running' if gang else 'bound'} within "
                f"{seconds:g} s: look at its "
                f"controller and at pending pods of namespace {move.namespace}"
            )
        await asyncio.sleep(_LOOK_AGAIN)


def _owner(pod: Manifest) -> str:
    owners = pod["metadata"].get("ownerReferences", ())
    return next((str(o["uid"]) for o in owners if o.get("controller")), "")


async def _owned(client: Client, namespace: str, owner: str) -> list[Manifest]:
    listing = await client.list(PODS, namespace)
    return [p for p in listing.items if _owner(p) == owner]
