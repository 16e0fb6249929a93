"""Elastic gangs and published holdings on a real API server, over the deaths of schedulers."""

import asyncio
import signal
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS, PODGROUPS, PODS, PRIORITY_CLASSES, Manifest
from alnair.live.following import ClusterFollower
from alnair.live.scheduler_lease import lease
from alnair.model import names
from alnair.model.api_types import Holdings
from alnair.scheduler.advice.worker_room import Startable, WorkerTemplate, worker_room
from alnair.scheduler.engine.view import View
from alnair.scheduler.profiles import profiles
from kit import make
from kit.live.scheduler_process import (
    SHORT_LEASE,
    StartController,
    StartScheduler,
    bound,
    eventually,
    pod,
)

#: Nodes of the cluster, and GPUs of each (`conftest`).
NODE_COUNT, GPUS = 6, 4
FINALIZER = "alnair.test/hold"


@pytest.fixture
async def high(admin: Client) -> AsyncIterator[str]:
    """A priority class above the default."""
    name = f"high-{uuid.uuid4().hex[:8]}"
    await admin.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 1000})
    yield name
    await admin.delete(PRIORITY_CLASSES, name)


@pytest.fixture(autouse=True)
async def none_held(admin: Client, namespace: str) -> AsyncIterator[None]:
    """Lets go of the pods that a test keeps from leaving, before the next one needs their room."""
    yield
    await admin.delete_collection(PODS, namespace, grace_seconds=0)
    await let_go(admin, namespace)


def on_a_node(namespace: str, name: str, *, priority_class: str = "", **metadata: Any) -> Manifest:
    """A pod that takes all GPUs of a node."""
    manifest = pod(namespace, name, limits={names.GPU: str(GPUS)}, **metadata)
    if priority_class:
        manifest["spec"]["priorityClassName"] = priority_class
    return manifest


async def create_gang(admin: Client, namespace: str, target: int, least: int) -> None:
    group = {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {
            "name": "job",
            "namespace": namespace,
            "annotations": {names.ELASTIC_MIN: str(least)},
        },
        "spec": {"minMember": target},
    }
    await admin.create(PODGROUPS, group)
    labels = {names.POD_GROUP_LABEL: "job"}
    for i in range(target):
        worker = on_a_node(namespace, f"job-{i}", labels=labels, finalizers=[FINALIZER])
        await admin.create(PODS, worker)


async def condition(admin: Client, namespace: str, kind: str) -> dict[str, Any]:
    status = (await admin.get(PODGROUPS, "job", namespace)).get("status") or {}
    found = (c for c in status.get("conditions", ()) if c["type"] == kind)
    return dict(next(found, {})) | {"fits": status.get("fits"), "phase": status.get("phase")}


async def let_go(admin: Client, namespace: str) -> None:
    for one in (await admin.list(PODS, namespace)).items:
        if one["metadata"].get("deletionTimestamp"):
            free = {"metadata": {"finalizers": None}}
            await admin.merge_patch(PODS, one["metadata"]["name"], free, namespace)


async def test_an_elastic_gang_waits_with_a_figure_shrinks_and_goes_on_over_dead_schedulers(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
    high: str,
) -> None:
    first = start_scheduler(*SHORT_LEASE)
    start_controller()
    await admin.create(PODS, on_a_node(namespace, "other"))

    async def other_is_there() -> bool:
        return bool(await bound(admin, namespace))

    await eventually(other_is_there)
    await create_gang(admin, namespace, NODE_COUNT, 4)

    async def told_how_many_fit() -> bool:
        found = await condition(admin, namespace, "Scheduled")
        return (found.get("reason"), found["fits"]) == ("Unschedulable", NODE_COUNT - 1)

    await eventually(told_how_many_fit)
    before = (await condition(admin, namespace, "Scheduled"))["lastTransitionTime"]
    # What its operator does then: one member less.
    await admin.merge_patch(PODGROUPS, "job", {"spec": {"minMember": NODE_COUNT - 1}}, namespace)

    async def placed_once() -> bool:
        found = await condition(admin, namespace, "InitiallyScheduled")
        return found.get("status") == "True" and found["phase"] == "Running"

    await eventually(placed_once)
    assert before <= (await condition(admin, namespace, "Scheduled"))["lastTransitionTime"]
    assert (await condition(admin, namespace, "Scheduled"))["fits"] is None, "it is true no more"
    workers = {n: w for n, w in (await bound(admin, namespace)).items() if n.startswith("job")}
    assert len(workers) == NODE_COUNT - 1

    first.signal(signal.SIGKILL)
    await admin.create(PODS, on_a_node(namespace, "high", priority_class=high))
    start_scheduler(*SHORT_LEASE)

    async def one_leaves() -> list[str]:
        pods = (await admin.list(PODS, namespace)).items
        return [p["metadata"]["name"] for p in pods if p["metadata"].get("deletionTimestamp")]

    async def told() -> bool:
        found = (await admin.list(EVENTS, namespace)).items
        text = f"; elastic gang {namespace}/job goes on with {NODE_COUNT - 2} members, at least 4"
        return any(e["reason"] == "Preempted" and e["message"].endswith(text) for e in found)

    async def held() -> bool:
        found = await lease(admin)
        rooms = found.holdings.room if found and found.holdings else ()
        return [r.pod for r in rooms] == [f"{namespace}/high"]

    await eventually(told)
    # Until the worker that leaves is gone, its room is held, and whoever gives out GPUs hears that.
    await eventually(held)
    leaving: list[str] = []

    async def is_leaving() -> bool:  # the event is about a decision
        leaving[:] = await one_leaves()
        return bool(leaving)

    await eventually(is_leaving)
    (gone,) = leaving
    await let_go(admin, namespace)

    async def landed() -> bool:
        return "high" in await bound(admin, namespace)

    await eventually(landed)
    assert (await bound(admin, namespace))["high"] == workers[gone]
    assert await one_leaves() == []
    assert (await condition(admin, namespace, "Scheduled"))["status"] == "True"

    async def nothing_held() -> bool:
        found = await lease(admin)
        return bool(found and found.holdings and not found.holdings.room)

    await eventually(nothing_held)


async def test_who_asks_how_many_workers_would_start_hears_what_the_leader_holds(
    admin: Client, namespace: str, start_scheduler: StartScheduler, high: str
) -> None:
    # It leads to the end, also where this machine stands still for seconds.
    start_scheduler("--retry-period=0.5")
    for i in range(NODE_COUNT - 1):
        await admin.create(PODS, on_a_node(namespace, f"p-{i}", finalizers=[FINALIZER]))
    for i in range(2):
        half = pod(namespace, f"half-{i}", limits={names.GPU: str(GPUS // 2)})
        await admin.create(PODS, half)

    async def full() -> bool:
        return len(await bound(admin, namespace)) == NODE_COUNT + 1

    await eventually(full)
    await admin.create(PODS, on_a_node(namespace, "high", priority_class=high))

    async def nominated() -> str:
        found = await lease(admin)
        rooms = found.holdings.room if found and found.holdings else ()
        return rooms[0].node if rooms else ""

    async def is_nominated() -> bool:
        return bool(await nominated())

    await eventually(is_nominated)
    node = await nominated()
    # Half a node is free, too little for the pod that waits.
    await admin.delete(PODS, "half-0", namespace)
    job = WorkerTemplate(make.gang("new", 1), make.pod("w", make.spec(whole=1)))
    follower = ClusterFollower(admin, profiles)
    following = asyncio.create_task(follower.run())
    await follower.synced()

    def started(view: View, held: Holdings) -> Startable:
        assert [room.node for room in held.room] == [node]
        with worker_room(view, {"new": job}, time.time(), held.quota) as room:
            return room.startable("new", 3 * GPUS)

    async def answer_of() -> Startable:
        return await follower.ask(started)

    async def half_a_node_is_free() -> bool:
        return (await answer_of()).workers == GPUS // 2

    await eventually(half_a_node_is_free)
    answer = await answer_of()
    assert node not in dict(answer.nodes)
    # It follows what happens, too.
    await admin.create(PODS, pod(namespace, "next", limits={names.GPU: str(GPUS // 2)}))

    async def none_is_free() -> bool:
        return (await answer_of()).workers == 0

    await eventually(none_is_free)
    following.cancel()
    await let_go(admin, namespace)
