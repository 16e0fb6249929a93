"""Whether a pod may go to a node, the real kube-scheduler and ours say alike."""

import asyncio
import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import random_storage
from alnair.apps.scheduling.feed import Feed
from alnair.kube import config
from alnair.kube.client import Client
from alnair.kube.resources import (
    CLAIMS,
    CSI_NODES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Manifest,
    Resource,
)
from alnair.local.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from alnair.scheduler.engine import Engine
from alnair.scheduler.evaluation import Evaluation
from alnair.scheduler.framework import Profile
from alnair.scheduler.profiles import profiles
from kube_scheduler import REFUSAL, Extender
from random_cluster import NAMESPACES as NAMESPACE_LABELS
from random_cluster import NODES as SIZE
from random_cluster import RandomCluster

R = TypeVar("R")
#: Clusters to compare, with `random_cluster.PROBES` pods each; more by hand.
CLUSTERS = int(os.environ.get("ALNAIR_DIFFERENTIAL_CLUSTERS", "8"))
#: What kube-scheduler says of nodes that it did not look at, since the pod names others.
NARROWED = "node(s) didn't satisfy plugin(s)"
_IN_FLIGHT = 16
_JUDGED_SECONDS = 30.0


class Judges:
    """A control plane with the real kube-scheduler; ours is asked in this process."""

    def __init__(self, cluster: LocalCluster, extender: Extender) -> None:
        self.cluster = cluster
        self.extender = extender


@pytest.fixture(scope="module")
def judges(cluster_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judges]:
    cluster = LocalCluster(f"diff-{uuid.uuid4().hex[:8]}", components=BARE, root=cluster_root)
    with Extender() as extender:
        asyncio.run(_start(cluster, extender, tmp_path_factory.mktemp("kube-scheduler")))
        yield Judges(cluster, extender)
        asyncio.run(cluster.down())


async def _start(cluster: LocalCluster, extender: Extender, folder: Path) -> None:
    await cluster.up()
    path = folder / "config.yaml"
    extender.write_config(path, cluster.kubeconfig("kube-scheduler"), names.SCHEDULER)
    await cluster.start("kube-scheduler", extra_args=[f"--config={path}"])
    async with Client(config.load(cluster.kubeconfig())) as client:
        for name, labels in NAMESPACE_LABELS.items():
            await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        await _create(client, STORAGE_CLASSES, random_storage.classes())
        await _create(client, CSI_NODES, random_storage.csi_nodes(SIZE))
        for name in NAMESPACE_LABELS:
            claims = random_storage.claims(name)
            uids = {
                claim["metadata"]["name"]: claim["metadata"]["uid"]
                for claim in await _create_with_status(client, CLAIMS, claims)
            }
            volumes = random_storage.volumes(name)
            for volume in volumes:
                reference = volume["spec"]["claimRef"]
                reference["uid"] = uids[reference["name"]]
            await _create_with_status(client, PERSISTENT_VOLUMES, volumes)
        await _create_with_status(client, PERSISTENT_VOLUMES, random_storage.free_volumes())


@settings(
    max_examples=CLUSTERS,
    derandomize="ALNAIR_DIFFERENTIAL_CLUSTERS" not in os.environ,
    # A smaller seed is no simpler cluster.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_same_nodes_pass_all_filters(judges: Judges, seed: int) -> None:
    differences = asyncio.run(compare(judges, RandomCluster(seed, names.SCHEDULER)))
    assert not differences, f"seed {seed}\n" + "\n\n".join(differences[:3])


def test_a_plugin_that_is_missing_would_be_noticed(judges: Judges) -> None:
    cluster = RandomCluster(1, names.SCHEDULER)
    assert asyncio.run(compare(judges, cluster, left_out="PodTopologySpread", times=1))


async def compare(
    judges: Judges, random: RandomCluster, *, left_out: str = "", times: int = 3
) -> list[str]:
    """Have both judge all probes of the cluster; returns what they see differently.

    Args:
        judges: kube-scheduler, and the cluster for both.
        random: what there is.
        left_out: a plugin that ours does without.
        times: how often to ask about probes that they disagree on. kube-scheduler learns of nodes
            and of pods by two ways, so it may have been behind.
    """
    profile = _profile(left_out)
    kubeconfig = config.load(judges.cluster.kubeconfig())
    async with Client(kubeconfig) as client:
        await _have(client, random)
        found: list[str] = []
        doubtful = random.probes
        for _ in range(times):
            found, doubtful = await _differences(judges, client, random, doubtful, profile)
            if not found:
                break
        return found


async def _differences(
    judges: Judges,
    client: Client,
    random: RandomCluster,
    probes: list[Manifest],
    profile: Profile,
) -> tuple[list[str], list[Manifest]]:
    created = await _create(client, PODS, probes)
    uids = {pod["metadata"]["uid"]: pod for pod in created}
    theirs = await _theirs(judges.extender, client, set(uids))
    engine = await _engine(client, profile)
    texts, doubtful = [], []
    for probe, pod in zip(probes, created, strict=True):
        mine = _evaluation(engine, pod["metadata"]["uid"], profile)
        passed, said = theirs[pod["metadata"]["uid"]]
        if passed != _passed(engine, mine):
            doubtful.append(probe)
            texts.append(_told(random, probe, engine, mine, passed, said))
        elif not _agree(said, mine):
            doubtful.append(probe)
            ours = mine.refusal or _counted(mine)
            texts.append(f"kube-scheduler: {said}\nours: {ours}\npod: {json.dumps(probe)}")
    await _delete(client, PODS, created)
    return texts, doubtful


# --- the two judges -------------------------------------------------------------------------------


async def _theirs(
    extender: Extender, client: Client, uids: set[str]
) -> dict[str, tuple[frozenset[str], str]]:
    """Wait until kube-scheduler judged the pods; returns for each what passed and what it said."""
    deadline = time.monotonic() + _JUDGED_SECONDS
    while True:
        judged: dict[str, tuple[frozenset[str], str]] = {}
        for pod in await _pods(client):
            uid = pod["metadata"]["uid"]
            for condition in pod.get("status", {}).get("conditions", ()):
                if uid in uids and condition["type"] == "PodScheduled":
                    message = condition.get("message", "")
                    judged[uid] = extender.passed.get(uid, frozenset()), message
        if judged.keys() == uids:
            return judged
        if time.monotonic() > deadline:
            pytest.fail(f"kube-scheduler judged {len(judged)} of {len(uids)} pods")
        await asyncio.sleep(0.1)


def _profile(left_out: str) -> Profile:
    profile = next(p for p in profiles() if p.scheduler == names.SCHEDULER)
    plugins = [p for p in profile.plugins if p.name != left_out]
    return Profile(profile.scheduler, plugins, profile.weights)


async def _engine(client: Client, profile: Profile) -> Engine:
    """Return an engine of ours that knows the cluster as our feed tells it."""
    feed = Feed(client)
    run = asyncio.create_task(feed.run())
    try:
        await feed.synced()
        engine = Engine([profile])
        engine.learn(list(feed.everything()), 0.0)
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    engine.step([], 0.0, limit=0)
    return engine


def _evaluation(engine: Engine, uid: str, profile: Profile) -> Evaluation:
    return engine.evaluations.of(engine.accounts.records[uid].spec, profile)


def _passed(engine: Engine, evaluation: Evaluation) -> frozenset[str]:
    if evaluation.refusal is not None:
        return frozenset()
    rows = engine.accounts.columns.row_of
    return frozenset(name for name, row in rows.items() if evaluation.feasible(row))


def _agree(message: str, mine: Evaluation) -> bool:
    """Return whether kube-scheduler's message has the same reasons, for as many nodes each."""
    told = message.partition(": ")[2].removesuffix(".")
    if NARROWED in told or not told[:1].isdigit():
        # It did not look at all nodes, or at none since it refused the pod as such: a claim is
        # missing, say. Ours goes from node to node.
        return True
    counted = (part.split(" ", 1) for part in told.split(", "))
    return _counted(mine) == {text: int(count) for count, text in counted if text != REFUSAL}


def _counted(evaluation: Evaluation) -> dict[str, int]:
    """Return the reasons of ours with the number of nodes of each."""
    counts: Counter[str] = Counter()
    for _, reason, count in evaluation.refusals()[1]:
        counts[reason.text] += count
    return dict(counts)


def _told(
    random: RandomCluster,
    probe: Manifest,
    engine: Engine,
    mine: Evaluation,
    theirs: frozenset[str],
    said: str,
) -> str:
    """Tell a difference so that it can be understood: the pod, a node, and what each says."""
    ours = _passed(engine, mine)
    name = min(ours ^ theirs)
    node = next(n for n in random.nodes if n["metadata"]["name"] == name)
    here = [p for p in random.bound if p["spec"]["nodeName"] == name]
    row = engine.accounts.columns.row_of[name]
    everywhere = slice(0, engine.accounts.columns.n)
    why = mine.refusal or [
        f"{plugin}: {reason.text}"
        for plugin, compiled in mine._filters
        for reason, mask in compiled.reasons(everywhere)
        if mask[row]
    ]
    lines = [
        f"node {name}: {'only kube-scheduler' if name in theirs else 'only ours'} takes it",
        f"only kube-scheduler takes {sorted(theirs - ours)}, only ours {sorted(ours - theirs)}",
        f"ours says: {why}",
        f"kube-scheduler says: {said}",
        f"pod: {json.dumps(probe)}",
        f"node: {json.dumps(node)}",
        f"pods there: {json.dumps(here)}",
    ]
    return "\n".join(lines)


# --- the cluster ----------------------------------------------------------------------------------


async def _have(client: Client, random: RandomCluster) -> None:
    """Have the cluster's nodes and pods there, and nothing of another one."""
    await _clear(client)
    await _create(client, NODES, random.nodes)
    bound = await _create(client, PODS, random.bound)
    # A finalizer keeps them.
    await _delete(client, PODS, [pod for pod in bound if pod["metadata"].get("finalizers")])


async def _clear(client: Client) -> None:
    async def release(pod: Manifest) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"finalizers": None}}
        await client.merge_patch(PODS, meta["name"], patch, meta["namespace"])

    pods = await _pods(client)
    await _delete(client, PODS, [p for p in pods if "deletionTimestamp" not in p["metadata"]])
    await _each(release, [p for p in pods if p["metadata"].get("finalizers")])
    await _delete(client, NODES, (await client.list(NODES)).items)


async def _pods(client: Client) -> list[Manifest]:
    listings = [await client.list(PODS, namespace) for namespace in NAMESPACE_LABELS]
    return [pod for listing in listings for pod in listing.items]


async def _create(
    client: Client, resource: Resource[Manifest], manifests: Iterable[Manifest]
) -> list[Manifest]:
    return await _each(lambda manifest: client.create(resource, manifest), manifests)


async def _create_with_status(
    client: Client, resource: Resource[Manifest], manifests: Iterable[Manifest]
) -> list[Manifest]:
    """Create objects; the API server takes their status only in a second write."""

    async def create(manifest: Manifest) -> Manifest:
        made = await client.create(resource, manifest)
        meta = made["metadata"]
        return await client.merge_patch(
            resource,
            meta["name"],
            {"status": manifest["status"]},
            meta.get("namespace"),
            subresource="status",
        )

    return await _each(create, manifests)


async def _delete(
    client: Client, resource: Resource[Manifest], objects: Iterable[Manifest]
) -> None:
    async def delete(each: Manifest) -> None:
        meta = each["metadata"]
        await client.delete(resource, meta["name"], meta.get("namespace"), grace_seconds=0)

    await _each(delete, objects)


async def _each(do: Callable[[Manifest], Awaitable[R]], objects: Iterable[Manifest]) -> list[R]:
    """Do the same with all objects, a few at a time; the results keep the order."""
    slots = asyncio.Semaphore(_IN_FLIGHT)

    async def limited(each: Manifest) -> R:
        async with slots:
            return await do(each)

    return list(await asyncio.gather(*map(limited, objects)))
