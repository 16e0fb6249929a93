"""The live scheduler when processes are killed: nothing is lost, nothing is bound twice."""

import asyncio
import json
import os
import signal
import time

from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NODES, PODGROUPS, PODS
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from alnair.processes.scheduler.published_learning import read
from alnair.scheduler.profiles import profiles
from kit.live.scheduler_process import SHORT_LEASE, StartScheduler, bound, eventually, holder, pod

#: Slices of 5 % of a GPU's compute: 24 GPUs hold 480 of them.
COUNT = int(os.environ.get("ALNAIR_BURST_PODS", "120"))
SLICE = {names.VGPU_MEMORY: "700", names.VGPU_COMPUTE: "5"}
#: A lease that outlasts a test, unless it is given back.
LONG_LEASE = ("--lease-duration=300", "--renew-deadline=200")


class Binds:
    """An independent watch: which node each pod was seen bound to, ever."""

    def __init__(self) -> None:
        self.nodes: dict[str, set[str]] = {}

    async def follow(self, client: Client, namespace: str) -> None:
        while True:
            try:
                listing = await client.list(PODS, namespace)
                for found in listing.items:
                    self._note(found)
                watch = client.watch(
                    PODS, resource_version=listing.resource_version, namespace=namespace
                )
                async for event in watch:
                    self._note(event.object)
            except Exception:  # noqa: BLE001 - the API server is killed in these tests
                await asyncio.sleep(0.1)

    def _note(self, found: dict[str, dict[str, str]]) -> None:
        node = found["spec"].get("nodeName")
        if node:
            self.nodes.setdefault(found["metadata"]["uid"], set()).add(node)


async def create_slices(
    client: Client, namespace: str, last_after: asyncio.Event | None = None
) -> None:
    """Create all; the last of them only after something, so that it comes in their middle."""

    async def one(i: int) -> None:
        await client.create(PODS, pod(namespace, f"slice-{i}", limits=SLICE, cpu="10m"))

    for start in range(0, COUNT, 20):
        if last_after is not None and start >= COUNT - 20:
            await last_after.wait()
        await asyncio.gather(*(one(i) for i in range(start, start + 20)))


async def all_slices_bound(client: Client, namespace: str) -> bool:
    return len(await bound(client, namespace)) == COUNT


async def all_are_bound_once(admin: Client, namespace: str, binds: Binds) -> None:
    """Wait until all slices have a node; none may have had two."""

    async def complete() -> bool:
        return await all_slices_bound(admin, namespace)

    await eventually(complete, 60)
    assert {len(nodes) for nodes in binds.nodes.values()} == {1}


async def test_a_scheduler_killed_in_a_burst_is_replaced_and_nothing_is_bound_twice(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    binds = Binds()
    watching = asyncio.create_task(binds.follow(admin, namespace))
    first = start_scheduler(*SHORT_LEASE)
    killed = asyncio.Event()
    creating = asyncio.create_task(create_slices(admin, namespace, killed))

    async def some() -> bool:
        return len(binds.nodes) > COUNT // 8

    await eventually(some)
    first.signal(signal.SIGKILL)
    killed.set()
    await creating
    assert len(await bound(admin, namespace)) < COUNT
    start_scheduler(*SHORT_LEASE)

    await all_are_bound_once(admin, namespace, binds)
    watching.cancel()


async def test_an_api_server_killed_in_a_burst_costs_no_pod(
    gpu_cluster: LocalCluster,
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
) -> None:
    binds = Binds()
    await create_slices(admin, namespace)
    watching = asyncio.create_task(binds.follow(admin, namespace))
    start_scheduler()

    async def some() -> bool:
        return len(binds.nodes) > COUNT // 8

    await eventually(some)
    await gpu_cluster.restart("kube-apiserver", signal.SIGKILL)

    await all_are_bound_once(admin, namespace, binds)
    watching.cancel()


async def test_of_two_schedulers_one_leads_and_the_other_takes_over(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    # Before they start: what a leader has learned is first saved when it knows all there is, and
    # then once in a minute.
    await admin.create(PODS, pod(namespace, "before"))
    pair = {s.identity: s for s in (start_scheduler(), start_scheduler())}

    async def one_leads() -> bool:
        return await holder(admin) in pair

    await eventually(one_leads)
    leader = pair[await holder(admin)]
    other = next(s for s in pair.values() if s is not leader)

    async def placed(count: int) -> bool:
        return len(await bound(admin, namespace)) == count

    await eventually(lambda: placed(1))

    async def pods_seen() -> int:
        """By what the lease says that the leader has learned."""
        lease = await admin.get(LEASES, names.SCHEDULER, names.NAMESPACE)
        saved = read(lease["metadata"]["annotations"].get(names.LEARNED, ""), profiles())
        return int(saved["OpportunityCost"]["mix"]["seen"]) if saved else 0

    async def is_saved() -> bool:
        return await pods_seen() >= 1

    await eventually(is_saved)
    leader.signal(signal.SIGKILL)
    killed = time.monotonic()
    await admin.create(PODS, pod(namespace, "after"))
    await eventually(lambda: placed(2), 60, "the other one takes over")
    assert await holder(admin) == other.identity
    assert await is_saved(), "it says what the first one learned"
    print(f"took over after {time.monotonic() - killed:.1f} s")


async def test_a_leader_that_was_stopped_does_not_bind_when_it_wakes_up(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    first = start_scheduler(*SHORT_LEASE)

    async def first_leads() -> bool:
        return await holder(admin) == first.identity

    await eventually(first_leads)
    first.signal(signal.SIGSTOP)
    second = start_scheduler(*LONG_LEASE)

    async def second_leads() -> bool:
        return await holder(admin) == second.identity

    await eventually(second_leads)
    first.signal(signal.SIGCONT)
    await admin.create(PODS, pod(namespace, "one"))

    async def placed() -> bool:
        return len(await bound(admin, namespace)) == 1

    await eventually(placed)

    async def stands_by() -> bool:
        return "standing by" in first.log.read_text()

    await eventually(stands_by, what="a deposed leader stands by")
    assert await holder(admin) == second.identity
    assert first.process.poll() is None


async def test_a_leader_that_was_stopped_in_a_burst_leads_again_and_binds_the_rest(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    binds = Binds()
    watching = asyncio.create_task(binds.follow(admin, namespace))
    only = start_scheduler(*SHORT_LEASE)
    continued = asyncio.Event()
    creating = asyncio.create_task(create_slices(admin, namespace, continued))

    async def some() -> bool:
        return len(binds.nodes) > COUNT // 8

    await eventually(some)
    only.signal(signal.SIGSTOP)
    await asyncio.sleep(2.5)  # longer than it may lead without a renewal
    only.signal(signal.SIGCONT)
    continued.set()
    await creating
    await all_are_bound_once(admin, namespace, binds)
    assert "standing by" in only.log.read_text()
    watching.cancel()


async def test_a_graceful_end_hands_over_at_once(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    first = start_scheduler(*LONG_LEASE)

    async def first_leads() -> bool:
        return await holder(admin) == first.identity

    await eventually(first_leads)
    second = start_scheduler(*LONG_LEASE)

    async def second_waits() -> bool:
        return "serving health" in second.log.read_text()

    await eventually(second_waits)
    first.signal(signal.SIGTERM)
    assert first.process.returncode == 0

    async def second_leads() -> bool:
        return await holder(admin) == second.identity

    await eventually(second_leads, what="the second one, long before the lease would be over")


async def test_a_gang_cut_short_by_a_kill_is_completed_as_planned(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    """The state that a leader leaves that dies between two Bindings, made by hand."""
    group = {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "pair", "namespace": namespace},
        "spec": {"minMember": 2},
    }
    await admin.create(PODGROUPS, group)
    nodes = sorted(node["metadata"]["name"] for node in (await admin.list(NODES)).items)[:2]
    labels = {names.POD_GROUP_LABEL: "pair"}
    uids = []
    for i in range(2):
        made = await admin.create(
            PODS, pod(namespace, f"member-{i}", limits={names.GPU: "1"}, labels=labels)
        )
        uids.append(made["metadata"]["uid"])
    plan = {f"member-{i}": {"node": nodes[i], "gpus": {"main": [2 + i]}} for i in range(2)}
    text = json.dumps({"v": 1, "t": "2099-01-01T00:00:00Z", "pods": plan})
    await admin.merge_patch(
        PODGROUPS, "pair", {"metadata": {"annotations": {names.GANG_PLAN: text}}}, namespace
    )
    await admin.bind(namespace, "member-0", uids[0], nodes[0])
    start_scheduler()

    async def complete() -> bool:
        return len(await bound(admin, namespace)) == 2

    await eventually(complete)
    second = await admin.get(PODS, "member-1", namespace)
    assert second["spec"]["nodeName"] == nodes[1]
    document = json.loads(second["metadata"]["annotations"][names.GPU_ASSIGNMENT])
    assert [part["index"] for part in document["containers"]["main"]] == [3]


async def test_a_gang_cut_short_that_cannot_be_completed_is_evicted(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    group = {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "pair", "namespace": namespace},
        "spec": {"minMember": 2, "scheduleTimeoutSeconds": 3},
    }
    await admin.create(PODGROUPS, group)
    labels = {names.POD_GROUP_LABEL: "pair"}
    small = await admin.create(
        PODS, pod(namespace, "small", limits={names.GPU: "1"}, labels=labels)
    )
    await admin.create(PODS, pod(namespace, "huge", limits={names.GPU: "64"}, labels=labels))
    node = (await admin.list(NODES)).items[0]["metadata"]["name"]
    plan = {name: {"node": node, "gpus": {"main": [0]}} for name in ("small", "huge")}
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps({"v": 1, "t": stamp, "pods": plan})
    await admin.merge_patch(
        PODGROUPS, "pair", {"metadata": {"annotations": {names.GANG_PLAN: text}}}, namespace
    )
    await admin.bind(namespace, "small", small["metadata"]["uid"], node)
    start_scheduler()

    async def evicted() -> bool:
        return not await bound(admin, namespace)

    await eventually(evicted)
