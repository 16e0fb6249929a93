"""Alnair as pods over its life: seen, led by another, alone, beside the cluster, and gone."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import (
    CLUSTER_ROLES,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    Manifest,
)
from alnair.local.components.components import FULL
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.real_node.settings import NAME as REAL_NODE
from alnair.model import names
from alnair.processes.controller.rebalancing.memory_store import MemoryStore
from kit import guide
from kit.command import alnair, last_json
from kit.live.scheduler_process import SHORT_LEASE, eventually, pod
from kit.live.shared_clusters import discard
from kit.real_node.installed import Installed, runs_to_its_end, small
from kit.real_node.trying_tenants import is_held, pages, runs, tenant
from kit.real_node.whole_cluster import seen
from kit.upgrades import rounds
from kit.upgrades.rounds import CHART

INSTALLED = "app.kubernetes.io/name=alnair"
SELECTOR = f"{INSTALLED},app.kubernetes.io/component=scheduler"
#: The kinds of the chart's custom resources, which stay by its default (crds.keep).
JOBS = ("elastichorovodjobs", "elastictorchjobs", "horovodjobs")
KINDS = (
    *("elasticquotas.scheduling.x-k8s.io", "podgroups.scheduling.x-k8s.io"),
    *(f"{one}.ai.centauruscloud.io" for one in JOBS),
)
TOPOLOGIES = "noderesourcetopologies.topology.node.k8s.io"
CRDS = {f"object CustomResourceDefinition /{kind}" for kind in (*KINDS, TOPOLOGIES)}
CRDS |= {
    f"object APIService /{one}"
    for one in (
        *("v1alpha1.scheduling.x-k8s.io", "v1alpha2.topology.node.k8s.io"),
        "v1alpha1.ai.centauruscloud.io",
    )
}
#: What the kubelet itself counts.
SERVED = (names.GPU, names.VGPU)
#: A standard folder, which it made for the agent's pod; nothing is in it.
FOLDERS = {"file run/cdi"}


@pytest.fixture(scope="module", autouse=True)
def gone(installed: Installed) -> Iterator[None]:
    """When these tests are done, so is the cluster."""
    yield
    asyncio.run(discard(installed.cluster))


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with Client(client_config.load(installed.cluster.kubeconfig())) as client:
        yield client


async def leader(client: Client) -> str:
    """The pod that leads; empty while none does."""
    lease = await client.get(LEASES, names.SCHEDULER, names.NAMESPACE)
    return lease["spec"].get("holderIdentity") or ""


async def schedulers(client: Client) -> dict[str, Manifest]:
    """The scheduler's pods that stay, by name."""
    found = (await client.list(PODS, names.NAMESPACE, label_selector=SELECTOR)).items
    stay = (one for one in found if "deletionTimestamp" not in one["metadata"])
    return {one["metadata"]["name"]: one for one in stay}


async def test_status_shows_pods_their_version_and_their_leader(
    installed: Installed, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_well() -> bool:  # a former test may just have changed it
        pods = (await client.list(PODS, names.NAMESPACE, label_selector=INSTALLED)).items
        is_going = any("deletionTimestamp" in one["metadata"] for one in pods)
        return not is_going and not any(one["problem"] for one in await installed.workloads())

    await eventually(is_well, what="all that is installed is well")
    found = await installed.workloads()
    assert {one["name"]: (one["ready"], one["wanted"], one["problem"]) for one in found} == {
        "alnair-agent": (1, 1, ""),
        "alnair-controller": (1, 1, ""),
        "alnair-scheduler": (1, 1, ""),
    }
    assert found[2]["leader"] == await leader(client)
    (image,) = {
        one["spec"]["containers"][0]["image"] for one in (await schedulers(client)).values()
    }
    assert found[2]["versions"] == [image.rpartition(":")[2]]

    # By its name, or where its kubeconfig lies, a local cluster is known with its processes.
    of = installed.cluster
    monkeypatch.setenv("ALNAIR_STATE", str(of.layout.root))
    for option in (f"--name={of.name}", f"--kubeconfig={of.kubeconfig()}"):
        done = await asyncio.to_thread(alnair, "status", option, "--json")
        assert done.returncode == 0, done.stderr
        assert last_json(done)["installed"] == found
        assert "kubelet" in {one["name"] for one in last_json(done)["components"]}


async def test_a_profile_of_an_upgrade_is_in_force_without_a_restart(
    installed: Installed, client: Client
) -> None:
    before = await schedulers(client)
    profiles = [{"schedulerName": name} for name in (names.SCHEDULER, "team-a")]
    change = f"--set-json=scheduler.configuration={json.dumps({'profiles': profiles})}"
    await installed.upgrade(change)
    # As docs/how-to/configure-the-scheduler.md says: the kubelet looks at once, not in a minute.
    for name in before:
        metadata = {"annotations": {"example.com/look": "now"}}
        await client.merge_patch(PODS, name, {"metadata": metadata}, namespace=names.NAMESPACE)
    await runs_to_its_end(client, small("of-team-a", schedulerName="team-a"))

    def life(pods: dict[str, Manifest]) -> dict[str, tuple[str, int]]:
        return {
            name: (one["metadata"]["uid"], one["status"]["containerStatuses"][0]["restartCount"])
            for name, one in pods.items()
        }

    assert life(await schedulers(client)) == life(before)
    assert await leader(client) in before


@pytest.mark.timeout(300)
async def test_the_installed_controller_moves_pods_until_that_is_turned_off(
    installed: Installed, client: Client
) -> None:
    nodes = [node["metadata"]["name"] for node in (await client.list(NODES)).items]
    first, *others = [name for name in nodes if name != REAL_NODE]

    async def cordon(*names: str) -> None:
        for name in nodes:
            patch = {"spec": {"unschedulable": True if name in names else None}}
            await client.merge_patch(NODES, name, patch)

    def gpus(name: str, count: int, node: str = "") -> Manifest:
        made = pod("default", name, limits={names.GPU: str(count)})
        made["metadata"]["annotations"] = {names.EVICTABLE: str(not node).lower()}
        made["spec"] |= {"nodeName": node} if node else {}
        return made

    # Who waits for eight GPUs could start but for one pod, which could as well be elsewhere.
    for node in others:
        await client.create(PODS, gpus(f"on-{node}", 7, node))
    await cordon(*(name for name in nodes if name != first))
    template = gpus("web", 1)
    template["metadata"] |= {"labels": {"app": "web"}}
    selector = {"matchLabels": {"app": "web"}}
    web = {"metadata": {"name": "web"}, "spec": {"selector": selector, "template": template}}
    await client.create(REPLICA_SETS, web, "default")

    async def is_on(name: str, *where: str) -> bool:
        found = (await client.list(PODS, "default")).items
        on = {
            one["spec"].get("nodeName")
            for one in found
            if one["metadata"]["name"].startswith(name)
            and "deletionTimestamp" not in one["metadata"]
        }
        return bool(on) and on <= set(where)

    await eventually(lambda: is_on("web", first))
    await cordon()
    await client.create(PODS, gpus("big", 8))
    on = "every=2s,controller.rebalancing.coolDown=2s"
    await installed.upgrade(f"--set=controller.rebalancing.{on}")
    await eventually(lambda: is_on("big", first), 60, "nobody makes room")

    # Turned off in the middle of a plan, it takes its cordons off, though the right goes with it.
    store = MemoryStore(client)

    async def is_done() -> bool:
        await store.read()
        return bool(store.memory.past) and store.memory.plan is None

    await eventually(is_done)
    plan = store.memory.past[-1]
    left = msgspec.structs.replace(store.memory, plan=plan, past=())
    mark = {"annotations": {names.REBALANCING: "for pod default/big"}}
    await client.merge_patch(NODES, first, {"metadata": mark, "spec": {"unschedulable": True}})
    await store.write(left)
    await installed.upgrade("--set=controller.rebalancing.every=")

    async def is_tidy() -> bool:
        await store.read()
        node = await client.get(NODES, first)
        return store.memory.plan is None and not node["spec"].get("unschedulable")

    await eventually(is_tidy, 60, "the cordon stays")
    await installed.upgrade()
    with pytest.raises(NotFound):
        await client.get(CLUSTER_ROLES, "alnair-controller-rebalancing")
    await client.delete(REPLICA_SETS, "web", "default")
    for name in ("big", *(f"on-{node}" for node in others)):
        await client.delete(PODS, name, "default", grace_seconds=0)


async def test_where_the_leader_is_killed_the_other_replica_leads(
    installed: Installed, client: Client
) -> None:
    short = ",".join(SHORT_LEASE)
    await installed.upgrade(f"--set=scheduler.replicas=2,scheduler.extraArgs={{{short}}}")
    pods = await schedulers(client)
    assert len(pods) == 2

    async def is_taken_over() -> bool:
        return await leader(client) in pods

    await eventually(is_taken_over, 60, "none of them leads")
    first = await leader(client)
    (standby,) = pods.keys() - {first}
    node = {one["spec"]["nodeName"] for one in pods.values()}.pop()
    # The successor finds no node: it could be up before the lease runs out.
    await client.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
    try:
        await client.delete(PODS, first, names.NAMESPACE, grace_seconds=0)

        async def is_led() -> bool:
            return await leader(client) not in ("", first)

        await eventually(is_led, 60, "nobody else leads")
        assert await leader(client) == standby
    finally:
        await client.merge_patch(NODES, node, {"spec": {"unschedulable": None}})
    await runs_to_its_end(client, small("after", schedulerName=names.SCHEDULER))


async def test_without_kube_scheduler_all_pods_are_scheduled_by_the_installed_one(
    installed: Installed, client: Client
) -> None:
    await installed.again(components=[one for one in FULL if one != "kube-scheduler"])
    assert "kube-scheduler" not in installed.cluster.running()
    await runs_to_its_end(client, small("names-none"))
    # It schedules its own successors, and says what kube-scheduler would do beyond.
    controllers = "app.kubernetes.io/component=controller"
    for one in (await client.list(PODS, names.NAMESPACE, label_selector=controllers)).items:
        await client.delete(PODS, one["metadata"]["name"], names.NAMESPACE, grace_seconds=0)

    async def is_well() -> bool:
        found = {one["name"]: one for one in await installed.workloads()}
        return not found["alnair-controller"]["problem"]

    await eventually(is_well, 60, "the controller is not scheduled anew")
    log = PODS.item(await leader(client), names.NAMESPACE, "log")
    assert "pods with resourceClaims are refused" in (await client.raw("GET", log)).decode()


@pytest.mark.timeout(300)
async def test_pods_become_processes_and_pods_again(installed: Installed, client: Client) -> None:
    node = RealNodeWish(installed=False)
    await installed.again(real_node=node, scheduler=True, components=FULL)
    assert await installed.workloads() == []
    running = installed.cluster.running()
    assert {"alnair-scheduler", "alnair-controller", "agent"} <= {*running}
    await client.create(PODS, tenant("a", {names.VGPU_MEMORY: "2000"}))
    await runs(client, "a")
    await is_held(client, "a", 2000)

    # A tenant is held to its limit by whichever agent there is.
    await installed.again(real_node=RealNodeWish(installed=True), scheduler=False)
    assert {"alnair-scheduler", "alnair-controller", "agent"}.isdisjoint(
        installed.cluster.running()
    )

    async def is_well() -> bool:
        return not any(one["problem"] for one in await installed.workloads())

    await eventually(is_well, 60, "the pods are not well after the processes")
    await is_held(client, "a", 2000)
    await client.delete(PODS, "a", "default", grace_seconds=0)


@pytest.mark.timeout(300)
async def test_what_is_uninstalled_leaves_what_was_there_before_and_its_kinds_if_kept(
    installed: Installed, client: Client
) -> None:
    async def is_drained() -> bool:
        return not pages(installed.cluster)

    await eventually(is_drained, 60, "what containers had is not taken back")
    assert await left_by(installed, client, "crds.keep=true", CRDS) == CRDS
    values = ("--set=workloads.enabled=false,crds.keep=false", "--create-namespace", "--wait")
    await rounds.helm(installed.cluster, "install", "alnair", str(CHART), *values)
    assert await left_by(installed, client, "crds.keep=false", set()) == set()


async def left_by(installed: Installed, client: Client, value: str, kept: set[str]) -> set[str]:
    """Uninstall with this value, as the guide says; what was not there before remains.

    It is given 30 s to become what shall be kept: the API server takes things away by and by.
    """
    await installed.upgrade(f"--set={value}")
    said = await rounds.helm(installed.cluster, "uninstall", "alnair", "--wait")
    if kept:
        assert guide.differs("install.md", "helm uninstall alnair", said) == "", said
    await client.delete(NAMESPACES, names.NAMESPACE)

    async def is_gone() -> bool:
        try:
            await client.get(NAMESPACES, names.NAMESPACE)
        except NotFound:
            return True
        return False

    await eventually(is_gone, 60, "the namespace goes")
    # Of what a plugin served the kubelet has nothing allocatable at once, and forgets it after five
    # minutes.
    own = FOLDERS | {f"allocatable {one}=0" for one in SERVED}

    async def left() -> set[str]:
        return {
            line
            for line in await seen(installed.cluster, client) - installed.before - own
            if not line.startswith(tuple(f"capacity {one}=" for one in SERVED))
        }

    found: set[str] = set()

    async def is_as_wanted() -> bool:
        nonlocal found
        found = await left()
        return found == kept

    with contextlib.suppress(pytest.fail.Exception):  # the caller says what differs
        await eventually(is_as_wanted, 30)
    now = await seen(installed.cluster, client)
    assert installed.before - now == set(), "something is gone that was there"
    return found
