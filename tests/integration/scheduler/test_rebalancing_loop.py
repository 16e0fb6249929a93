"""The controller's rebalancing on a real API server: bounded, carried on after kills, given up."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.errors import NotFound
from alnair.kube.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    EVENTS,
    NODES,
    PODGROUPS,
    PODS,
    REPLICA_SETS,
    Manifest,
)
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from alnair.model.rebalancing import (
    PlannedMove,
    RebalanceBounds,
    RebalanceMemory,
    RebalancePlan,
)
from alnair.processes.controller.rebalancing.loop import Rebalancing
from alnair.processes.controller.rebalancing.memory_store import NAME, MemoryStore
from kit import training_jobs as jobs
from kit.live.audited_requests import events
from kit.live.scheduler_process import (
    SHORT_LEASE,
    StartController,
    StartScheduler,
    bound,
    eventually,
    pod,
)
from kit.live.shared_clusters import SharedClusters

LOOP: Final = (
    *SHORT_LEASE,
    "--rebalance-every=2s",
    "--rebalance-cool-down=2s",
    "--rebalance-moves=3",
    "--rebalance-timeout=60s",
)
ELASTIC: Final = next(one.resource() for one in TRAINING_JOBS if one.kind == "ElasticHorovodJob")
#: Pods of a Job end at once on simulated nodes, but for this.
LASTS: Final = {"annotations": {"ai.centaurus.io/simulated-duration": "3600s"}}


def owned(kind: str, namespace: str, name: str, gpus: int, **annotations: str) -> Manifest:
    """A ReplicaSet or Deployment of one pod."""
    template = pod(namespace, name, limits={names.GPU: str(gpus)})
    template["metadata"] = {"labels": {"app": name}, "annotations": annotations}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


async def memory(client: Client) -> RebalanceMemory:
    store = MemoryStore(client)
    await store.read()
    return store.memory


async def forget(client: Client) -> None:
    """Begin without what an earlier test has left."""
    try:
        await client.delete(CONFIGMAPS, NAME, names.NAMESPACE)
    except NotFound:
        return


async def cordon(client: Client, *but: str) -> None:
    """Cordon all nodes but these; none without a name."""
    for node in (await client.list(NODES)).items:
        name = node["metadata"]["name"]
        patch = {"spec": {"unschedulable": True if but and name not in but else None}}
        await client.merge_patch(NODES, name, patch)


async def marked(client: Client) -> list[str]:
    """Nodes that are cordoned, or have our annotation."""
    return [
        node["metadata"]["name"]
        for node in (await client.list(NODES)).items
        if node["spec"].get("unschedulable")
        or names.REBALANCING in (node["metadata"].get("annotations") or {})
    ]


async def marked_by_us(client: Client) -> list[str]:
    """Nodes that rebalancing has cordoned."""
    return [
        node["metadata"]["name"]
        for node in (await client.list(NODES)).items
        if names.REBALANCING in (node["metadata"].get("annotations") or {})
    ]


def evicted(audit: Path, namespace: str) -> list[str]:
    """Pods that the controller evicted there, as often as it did, by the API server's audit log."""
    found = []
    for event in events(audit):
        about = event.get("objectRef") or {}
        if about.get("subresource") == "eviction" and about.get("namespace") == namespace:
            assert event["user"]["username"] == "alnair-controller"
            found.append(str(about["name"]))
    return sorted(found)


async def test_a_gang_gets_its_nodes_by_few_moves_though_the_controller_is_killed_in_their_middle(
    admin: Client,
    namespace: str,
    gpu_cluster: LocalCluster,
    shared_clusters: SharedClusters,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    await forget(admin)
    start_scheduler()
    controller = start_controller(*LOOP)

    async def placed(count: int) -> bool:
        return len(await bound(admin, namespace)) == count

    # Four nodes with one GPU free each; a job on the fifth, and a Deployment's pod on the sixth.
    stays = {names.EVICTABLE: "false"}
    for i in range(4):
        await admin.create(REPLICA_SETS, owned("ReplicaSet", namespace, f"full-{i}", 3, **stays))
    await eventually(lambda: placed(4))
    full = set((await bound(admin, namespace)).values())
    every = {node["metadata"]["name"] for node in (await admin.list(NODES)).items}
    of_job, of_web = sorted(every - full)
    await cordon(admin, of_job)
    job = jobs.elastic("mnist", 1, 2, targetReplicas=2)
    job["spec"]["workersSpec"] |= LASTS
    job["spec"]["launcherSpec"] |= LASTS
    job["spec"]["elasticPolicy"] = {"scaleDownGraceSeconds": 1}
    await admin.create(ELASTIC, job, namespace)
    await eventually(lambda: placed(7), what="two workers and a launcher")
    await cordon(admin, of_web)
    await admin.create(DEPLOYMENTS, owned("Deployment", namespace, "web", 1))
    await eventually(lambda: placed(8))
    await cordon(admin)

    async def uids(selector: str) -> dict[str, str]:
        found = (await admin.list(PODS, namespace, label_selector=selector)).items
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    to_move = {**await uids("role=worker"), **await uids("app=web")}
    assert len(to_move) == 3
    launcher = await uids("role=launcher")
    group: dict[str, Any] = {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "big", "namespace": namespace},
        "spec": {"minMember": 2},
    }
    await admin.create(PODGROUPS, group)
    for i in range(2):
        labels = {names.POD_GROUP_LABEL: "big"}
        member = pod(namespace, f"big-{i}", limits={names.GPU: "4"}, labels=labels)
        await admin.create(PODS, member)

    most = 0

    async def look() -> RebalanceMemory:
        nonlocal most
        found = await memory(admin)
        most = max(most, len(found.plan.under_way) if found.plan else 0)
        return found

    async def has_begun() -> bool:
        found = await look()
        return found.plan is not None and bool(found.plan.under_way)

    await eventually(has_begun, 90, what="a move")
    controller.signal(signal.SIGKILL)
    start_controller(*LOOP)

    async def has_started() -> bool:
        found = await look()
        nodes = await bound(admin, namespace)
        started = {nodes.get("big-0"), nodes.get("big-1")} == {of_job, of_web}
        return started and found.plan is None and bool(found.past)

    await eventually(has_started, 150, what="the gang on the nodes that were freed")
    (plan,) = (await memory(admin)).past
    assert set(plan.nodes) == {of_job, of_web}
    assert [move.stage for move in plan.moves] == ["done"] * 3
    ways = {bool(move.job) for move in plan.moves}
    assert ways == {True, False}, "the job migrated, and the Deployment's pod was evicted"
    assert most == 1
    audit = shared_clusters.audits / f"{gpu_cluster.name}.log"
    assert evicted(audit, namespace) == sorted(to_move), "each of them, and once"
    assert await uids("role=launcher") == launcher, "the training went on"
    assert await marked(admin) == []

    async def told() -> bool:
        reasons = {one["reason"] for one in (await admin.list(EVENTS, namespace)).items}
        return reasons >= {"RoomIsMade", "Rebalanced"}

    await eventually(told)
    await admin.delete(ELASTIC, "mnist", namespace)
    await admin.delete(DEPLOYMENTS, "web", namespace)
    await admin.delete_collection(REPLICA_SETS, namespace)
    await forget(admin)


async def test_a_training_job_without_a_worker_gets_a_node_by_a_move(
    admin: Client,
    namespace: str,
    gpu_cluster: LocalCluster,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    await forget(admin)
    start_scheduler()
    two = [node["metadata"]["name"] for node in (await admin.list(NODES)).items[:2]]
    for name in two:
        await cordon(admin, name)
        await admin.create(REPLICA_SETS, owned("ReplicaSet", namespace, f"on-{name}", 1))

        async def placed(name: str = name) -> bool:
            return name in (await bound(admin, namespace)).values()

        await eventually(placed)
    await cordon(admin, *two)
    # Three GPUs are free on each, and nobody else may leave for a worker of four.
    job = jobs.elastic("train", 1, 2, gpusPerWorker=4)
    job["spec"]["workersSpec"] |= LASTS
    job["spec"]["launcherSpec"] |= LASTS
    await admin.create(ELASTIC, job, namespace)
    start_controller(*LOOP)

    async def has_workers() -> bool:
        found = await admin.get(ELASTIC, "train", namespace)
        return bool((found.get("status") or {}).get("scheduledReplicas"))

    await eventually(has_workers, 90, what="a worker on a node that was freed")

    async def is_over() -> bool:
        found = await memory(admin)
        return found.plan is None and bool(found.past) and not await marked_by_us(admin)

    await eventually(is_over, what="the plan over, and its cordon taken off")
    (plan,) = (await memory(admin)).past
    assert [move.stage for move in plan.moves] == ["done"]
    assert plan.name == f"ElasticHorovodJob {namespace}/train"

    async def told() -> bool:
        about = "involvedObject.kind=ElasticHorovodJob,reason=RoomIsMade"
        found = (await admin.list(EVENTS, namespace, field_selector=about)).items
        return [one["message"].partition(" on ")[0] for one in found] == [
            f"1 pod moves, so that {plan.name} gets 4 GPUs"
        ]

    await eventually(told)
    await admin.delete(ELASTIC, "train", namespace)
    await admin.delete_collection(REPLICA_SETS, namespace)
    await cordon(admin)
    await forget(admin)


class Plan:
    """A plan that a leader before us has written: a pod of a ReplicaSet, and then another one."""

    def __init__(self, client: Client, namespace: str, nodes: list[str]) -> None:
        self.client = client
        self.namespace = namespace
        self.first, self.second = nodes
        self.now = 1010.0

    async def make(self) -> PlannedMove:
        """Make the pod; returns its move, which waits."""
        await forget(self.client)
        made = owned("ReplicaSet", self.namespace, "web", 0)
        made["spec"]["template"]["spec"] |= {"nodeName": self.first, "schedulerName": "nobody"}
        await self.client.create(REPLICA_SETS, made)

        async def is_there() -> bool:
            return len(await bound(self.client, self.namespace)) == 1

        await eventually(is_there)
        (one,) = (await self.client.list(PODS, self.namespace)).items
        return PlannedMove(
            namespace=self.namespace,
            name=one["metadata"]["name"],
            uid=one["metadata"]["uid"],
            kind="ReplicaSet/web",
            source=self.first,
            target=self.second,
            owner=one["metadata"]["ownerReferences"][0]["uid"],
        )

    async def write(self, *moves: PlannedMove) -> None:
        plan = RebalancePlan(
            unit="u",
            name="pod a/b",
            pod=("a", "b", "c"),
            gpus=4,
            at=1000.0,
            nodes=(self.first,),
            moves=moves,
        )
        await MemoryStore(self.client).write(RebalanceMemory(plan=plan))

    def run(self) -> "asyncio.Task[None]":
        bounds = RebalanceBounds(every=3600, timeout=30)
        loop = Rebalancing(self.client, bounds, now=lambda: self.now)
        return asyncio.create_task(loop.run_writes())

    async def end(self, running: "asyncio.Task[None]") -> list[str]:
        """Wait until it is over; returns what became of the moves."""

        async def is_over() -> bool:
            return (await memory(self.client)).plan is None and not await marked(self.client)

        await eventually(is_over, what="the plan over, and no cordon left")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        (ended,) = (await memory(self.client)).past
        return [move.stage for move in ended.moves]


@pytest.fixture
async def written(admin: Client, namespace: str) -> AsyncIterator[Plan]:
    """A plan to be carried on; what it leaves is deleted."""
    nodes = [node["metadata"]["name"] for node in (await admin.list(NODES)).items[:2]]
    yield Plan(admin, namespace, nodes)
    await admin.delete_collection(REPLICA_SETS, namespace)
    await forget(admin)


async def test_a_move_that_a_budget_refuses_is_given_up_and_leaves_no_cordon(
    written: Plan,
) -> None:
    admin, namespace = written.client, written.namespace
    move = await written.make()
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budget = {"metadata": {"name": "keep", "namespace": namespace}, "spec": spec}
    await admin.create(DISRUPTION_BUDGETS, budget)

    async def guarded() -> bool:
        found = await admin.get(DISRUPTION_BUDGETS, "keep", namespace)
        return (found.get("status") or {}).get("currentHealthy") == 1

    await eventually(guarded)
    begun = msgspec.structs.replace(move, stage="begun", begun=1000.0, peers=1)
    later = msgspec.structs.replace(move, uid="other", name="other", source=written.second)
    await written.write(begun, later)
    # Of a plan that nobody knows any more.
    stray = {"metadata": {"annotations": {names.REBALANCING: "for pod x/y"}}}
    await admin.merge_patch(NODES, written.second, {**stray, "spec": {"unschedulable": True}})
    running = written.run()

    async def is_cordoned() -> bool:
        return await marked(admin) == [written.first]

    await eventually(is_cordoned, what="the node to be freed cordoned, and no other")
    written.now = 1031.0
    assert await written.end(running) == ["refused", "waits"]
    still = await admin.get(PODS, move.name, namespace)
    assert still["metadata"]["uid"] == move.uid
    await admin.delete(DISRUPTION_BUDGETS, "keep", namespace)


async def test_no_further_pod_moves_for_who_waits_no_more(written: Plan) -> None:
    move = await written.make()
    gone = msgspec.structs.replace(move, uid="other", name="other", stage="begun", begun=1000.0)
    await written.write(gone, move)
    assert await written.end(written.run()) == ["done", "spared"]
    still = await written.client.get(PODS, move.name, written.namespace)
    assert still["metadata"]["uid"] == move.uid


async def test_a_plan_that_nobody_has_carried_on_for_long_is_given_up_with_its_cordons(
    written: Plan,
) -> None:
    move = await written.make()
    begun = msgspec.structs.replace(move, stage="begun", begun=1000.0, peers=1)
    await written.write(begun)
    ours = {"metadata": {"annotations": {names.REBALANCING: "for pod a/b"}}}
    cordoned = {**ours, "spec": {"unschedulable": True}}
    await written.client.merge_patch(NODES, written.first, cordoned)
    written.now = 9000.0
    assert await written.end(written.run()) == ["begun"]
    still = await written.client.get(PODS, move.name, written.namespace)
    assert still["metadata"]["uid"] == move.uid


async def test_a_controller_that_no_longer_rebalances_takes_off_what_the_loop_has_left(
    written: Plan, start_controller: StartController
) -> None:
    admin = written.client
    move = await written.make()
    begun = msgspec.structs.replace(move, stage="begun", begun=1000.0, peers=1)
    await written.write(begun)
    ours = {"annotations": {names.REBALANCING: "for pod a/b"}}
    for name, metadata in ((written.first, ours), (written.second, {})):
        cordoned = {"metadata": metadata, "spec": {"unschedulable": True}}
        await admin.merge_patch(NODES, name, cordoned)
    start_controller(*SHORT_LEASE)

    async def is_over() -> bool:
        return (await memory(admin)).plan is None

    await eventually(is_over, what="the plan given up")
    assert await marked(admin) == [written.second], "what somebody else has cordoned stays"
    (ended,) = (await memory(admin)).past
    assert [one.stage for one in ended.moves] == ["begun"]
    await cordon(admin)
