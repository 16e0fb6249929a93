"""Pods with claims on a real API server, with the real controllers that bind volumes."""

import contextlib
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.storage import SELECTED_NODE
from alnair.kube.resources import (
    CLAIMS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Manifest,
)
from alnair.local.controlplane import LocalCluster
from kit.live.scheduler_process import SHORT_LEASE, StartScheduler, bound, eventually, pod

PROVISIONER = "storage.example.com"


@pytest.fixture
async def classes(admin: Client, namespace: str) -> AsyncIterator[tuple[str, str]]:
    """Two classes that wait for a pod's node: of volumes that exist, and that are made."""
    local, made = f"local-{namespace}", f"made-{namespace}"
    for name, provisioner in ((local, "kubernetes.io/no-provisioner"), (made, PROVISIONER)):
        body = {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        await admin.create(STORAGE_CLASSES, body)
    yield local, made
    await admin.delete_collection(PODS, namespace, grace_seconds=0)
    await admin.delete_collection(CLAIMS, namespace)
    for volume in (await admin.list(PERSISTENT_VOLUMES)).items:
        if volume["spec"].get("storageClassName") in (local, made):
            with contextlib.suppress(NotFound):
                await admin.delete(PERSISTENT_VOLUMES, volume["metadata"]["name"])
    for name in (local, made):
        await admin.delete(STORAGE_CLASSES, name)


def volume(name: str, storage_class: str, node: str, **spec: Any) -> Manifest:
    """A local volume of one node."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            **spec,
        },
    }


def claim(name: str, storage_class: str, mode: str = "ReadWriteOnce") -> Manifest:
    """A claim of 1 GiB."""
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def user(namespace: str, name: str, claim_name: str) -> Manifest:
    """A pod with a claim."""
    body = pod(namespace, name)
    source = {"claimName": claim_name}
    body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": source}]
    return body


async def nodes_of(client: Client) -> list[str]:
    """Names of nodes."""
    return sorted(n["metadata"]["name"] for n in (await client.list(NODES)).items)


async def test_pods_go_where_the_volumes_of_their_claims_are(
    admin: Client, namespace: str, classes: tuple[str, str], start_scheduler: StartScheduler
) -> None:
    local, _ = classes
    first, second, *_ = await nodes_of(admin)
    for name, node in (("a", first), ("b", second)):
        await admin.create(PERSISTENT_VOLUMES, volume(f"{name}-{namespace}", local, node))
        await admin.create(CLAIMS, claim(name, local), namespace)
        await admin.create(PODS, user(namespace, name, name))
    start_scheduler()

    async def both() -> bool:
        return len(await bound(admin, namespace)) == 2

    await eventually(both)
    for name, node in (await bound(admin, namespace)).items():
        found = await admin.get(CLAIMS, name, namespace)
        its = await admin.get(PERSISTENT_VOLUMES, found["spec"]["volumeName"])
        assert its["metadata"]["name"] == f"{'a' if node == first else 'b'}-{namespace}"
        assert its["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"


async def test_a_claim_for_one_pod_is_used_by_one_pod_at_a_time(
    admin: Client, namespace: str, classes: tuple[str, str], start_scheduler: StartScheduler
) -> None:
    local, _ = classes
    node, *_ = await nodes_of(admin)
    mode = "ReadWriteOncePod"
    await admin.create(
        PERSISTENT_VOLUMES, volume(f"v-{namespace}", local, node, accessModes=[mode])
    )
    await admin.create(CLAIMS, claim("data", local, mode), namespace)
    for name in "pq":
        await admin.create(PODS, user(namespace, name, "data"))
    start_scheduler()

    async def one() -> bool:
        return len(await bound(admin, namespace)) == 1

    async def refused() -> bool:
        pods = (await admin.list(PODS, namespace)).items
        return any("ReadWriteOncePod" in str(p["status"].get("conditions")) for p in pods)

    await eventually(one)
    await eventually(refused)
    (first,) = await bound(admin, namespace)
    await admin.delete(PODS, first, namespace, grace_seconds=0)

    async def other() -> bool:
        return set(await bound(admin, namespace)) == {"p", "q"} - {first}

    await eventually(other)


async def test_storage_that_is_made_is_awaited_beside_other_pods_and_a_refusal_is_told(
    admin: Client, namespace: str, classes: tuple[str, str], start_scheduler: StartScheduler
) -> None:
    _, made = classes
    await admin.create(CLAIMS, claim("data", made), namespace)
    await admin.create(PODS, user(namespace, "p", "data"))
    start_scheduler()

    async def selected() -> str:
        found = await admin.get(CLAIMS, "data", namespace)
        return (found["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")

    async def asked() -> bool:
        return bool(await selected())

    await eventually(asked)
    await admin.create(PODS, pod(namespace, "plain"))

    async def plain() -> bool:
        return "plain" in await bound(admin, namespace)

    await eventually(plain)
    assert "p" not in await bound(admin, namespace)
    # A provisioner that cannot make the volume takes the node back.
    patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
    await admin.merge_patch(CLAIMS, "data", patch, namespace)

    async def told() -> bool:
        status = (await admin.get(PODS, "p", namespace))["status"]
        return "was refused" in str(status.get("conditions"))

    await eventually(told)
    await eventually(asked)
    node = await selected()
    uid = (await admin.get(CLAIMS, "data", namespace))["metadata"]["uid"]
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace}
    await admin.create(
        PERSISTENT_VOLUMES,
        volume(f"v-{namespace}", made, node, claimRef={**reference, "name": "data", "uid": uid}),
    )

    async def placed() -> bool:
        return (await bound(admin, namespace)).get("p") == node

    await eventually(placed)


async def test_a_scheduler_killed_between_volume_and_pod_leaves_nothing_wrong(
    gpu_cluster: LocalCluster,
    admin: Client,
    namespace: str,
    classes: tuple[str, str],
    start_scheduler: StartScheduler,
) -> None:
    local, _ = classes
    first, second, *_ = await nodes_of(admin)
    # Nobody binds the claim while the controllers sleep, so the scheduler waits in between.
    await gpu_cluster.stop("kube-controller-manager")
    await admin.create(CLAIMS, claim("data", local), namespace)
    scheduler = start_scheduler(*SHORT_LEASE)
    for name, node in (("v", first), ("w", second)):
        manifest = volume(f"{name}-{namespace}", local, node)
        await admin.create(PERSISTENT_VOLUMES, manifest)
        # What the controllers would say of a new volume.
        status = {"status": {"phase": "Available"}}
        await admin.merge_patch(
            PERSISTENT_VOLUMES, f"{name}-{namespace}", status, subresource="status"
        )
    await admin.create(PODS, user(namespace, "p", "data"))
    taken: list[Manifest] = []

    async def written() -> bool:
        volumes = (await admin.list(PERSISTENT_VOLUMES)).items
        taken[:] = [
            v for v in volumes if v["spec"].get("claimRef", {}).get("namespace") == namespace
        ]
        return bool(taken)

    await eventually(written)
    scheduler.signal(signal.SIGKILL)
    assert not await bound(admin, namespace)
    await gpu_cluster.start("kube-controller-manager")
    start_scheduler(*SHORT_LEASE)

    async def placed() -> bool:
        return bool(await bound(admin, namespace))

    await eventually(placed)
    (its,) = taken
    found = await admin.get(CLAIMS, "data", namespace)
    assert found["spec"]["volumeName"] == its["metadata"]["name"]
    where = first if its["metadata"]["name"].startswith("v-") else second
    assert await bound(admin, namespace) == {"p": where}
