"""What differential tests share: a control plane with the real kube-scheduler, and random clusters.

Ours is asked in the process of the test, about what our feed reads of the same API server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import (
    CLAIMS,
    CSI_NODES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICES,
    STORAGE_CLASSES,
    Manifest,
    Resource,
)
from alnair.live.engine_feed import Feed
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile
from kit.live import random_storage
from kit.live.kube_scheduler import SCORES_LOGGED, Extender
from kit.live.random_cluster import NAMESPACES as NAMESPACE_LABELS
from kit.live.random_cluster import NODES as SIZE
from kit.live.random_cluster import RandomCluster, services

R = TypeVar("R")
_IN_FLIGHT = 16


class Judges:
    """A control plane with the real kube-scheduler; ours is asked in this process."""

    def __init__(self, cluster: LocalCluster, extender: Extender) -> None:
        self.cluster = cluster
        self.extender = extender


async def start(cluster: LocalCluster, extender: Extender, folder: Path) -> None:
    """Bring a bare cluster up, with kube-scheduler, namespaces, storage and Services in it."""
    await cluster.up()
    path = folder / "config.yaml"
    extender.write_config(path, cluster.kubeconfig("kube-scheduler"), names.SCHEDULER)
    await cluster.start("kube-scheduler", extra_args=[f"--config={path}", *SCORES_LOGGED])
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        for name, labels in NAMESPACE_LABELS.items():
            await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
            await create(client, SERVICES, services(name))
        await create(client, STORAGE_CLASSES, random_storage.classes())
        await create(client, CSI_NODES, random_storage.csi_nodes(SIZE))
        for name in NAMESPACE_LABELS:
            claims = random_storage.claims(name)
            uids = {
                claim["metadata"]["name"]: claim["metadata"]["uid"]
                for claim in await create_with_status(client, CLAIMS, claims)
            }
            volumes = random_storage.volumes(name)
            for volume in volumes:
                reference = volume["spec"]["claimRef"]
                reference["uid"] = uids[reference["name"]]
            await create_with_status(client, PERSISTENT_VOLUMES, volumes)
        await create_with_status(client, PERSISTENT_VOLUMES, random_storage.free_volumes())


async def engine_of(client: Client, profile: Profile) -> Engine:
    """Return an engine of ours that knows the cluster as our feed tells it."""
    feed = Feed(client, profile.kinds())
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


# --- the cluster ----------------------------------------------------------------------------------


async def have(client: Client, random: RandomCluster) -> None:
    """Have the cluster's nodes and pods there, and nothing of another one."""
    await _clear(client)
    await create(client, NODES, random.nodes)
    bound = await create(client, PODS, random.bound)
    # A finalizer keeps them.
    await delete(client, PODS, [pod for pod in bound if pod["metadata"].get("finalizers")])


async def _clear(client: Client) -> None:
    async def release(pod: Manifest) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"finalizers": None}}
        await client.merge_patch(PODS, meta["name"], patch, meta["namespace"])

    pods = await all_pods(client)
    await delete(client, PODS, [p for p in pods if "deletionTimestamp" not in p["metadata"]])
    await each(release, [p for p in pods if p["metadata"].get("finalizers")])
    await delete(client, NODES, (await client.list(NODES)).items)


async def all_pods(client: Client) -> list[Manifest]:
    """Return the pods of all random namespaces."""
    listings = [await client.list(PODS, namespace) for namespace in NAMESPACE_LABELS]
    return [pod for listing in listings for pod in listing.items]


async def create(
    client: Client, resource: Resource[Manifest], manifests: Iterable[Manifest]
) -> list[Manifest]:
    """Create objects, and return them as the API server has them."""
    return await each(lambda manifest: client.create(resource, manifest), manifests)


async def create_with_status(
    client: Client, resource: Resource[Manifest], manifests: Iterable[Manifest]
) -> list[Manifest]:
    """Create objects; the API server takes their status only in a second write."""

    async def write(manifest: Manifest) -> Manifest:
        made = await client.create(resource, manifest)
        meta = made["metadata"]
        return await client.merge_patch(
            resource,
            meta["name"],
            {"status": manifest["status"]},
            meta.get("namespace"),
            subresource="status",
        )

    return await each(write, manifests)


async def delete(client: Client, resource: Resource[Manifest], objects: Iterable[Manifest]) -> None:
    """Delete objects at once."""

    async def remove(one: Manifest) -> None:
        meta = one["metadata"]
        await client.delete(resource, meta["name"], meta.get("namespace"), grace_seconds=0)

    await each(remove, objects)


async def each(do: Callable[[Manifest], Awaitable[R]], objects: Iterable[Manifest]) -> list[R]:
    """Do the same with all objects, a few at a time; the results keep the order."""
    slots = asyncio.Semaphore(_IN_FLIGHT)

    async def limited(one: Manifest) -> R:
        async with slots:
            return await do(one)

    return list(await asyncio.gather(*map(limited, objects)))
