"""Alnair as an operator has it: pods, by Helm; upgraded under load, and removed."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NODES
from alnair.local import nodelist
from alnair.local.controlplane import LocalCluster
from alnair.local.own_images import images as own_images
from alnair.local.own_images import requirements as of_images
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.real_node.settings import NAME
from alnair.model import names
from kit.live.all_objects import all_objects
from kit.live.scheduler_process import eventually
from kit.live.shared_clusters import SharedClusters, discard
from kit.real_node import node_shell
from kit.real_node.trying_tenants import pages
from kit.upgrades import rounds
from kit.upgrades.under_load import under_load

#: How often it is upgraded; `ALNAIR_UPGRADES=30` for a longer look.
UPGRADES = int(os.environ.get("ALNAIR_UPGRADES", "3"))
#: What Kubernetes makes in each namespace, the chart's kinds with their objects, and Helm's notes.
KEPT = ("CustomResourceDefinition", "APIService", "Namespace", "ServiceAccount", "ConfigMap")


@pytest.fixture(scope="module")
def cluster(shared_clusters: SharedClusters, machine_before: object) -> Iterator[LocalCluster]:
    """A cluster in whose real node Alnair is installed; it is gone when these tests are done."""
    if said := of_images.problem():
        pytest.skip(said)
    wish = RealNodeWish(wanted=True, gpus=2, gpu_model="t4", installed=True)
    made = shared_clusters.make(f"installed-{uuid.uuid4().hex[:8]}", real_node=wish)
    try:
        asyncio.run(made.up())
        asyncio.run(made.add_nodes(nodelist.alike(3, 8, "A100")))
        yield made
    finally:
        asyncio.run(discard(made))


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        yield client


@pytest.mark.timeout(300 + 40 * UPGRADES)
async def test_no_pod_is_lost_and_no_limit_lifted_over_upgrades_and_rollbacks(
    cluster: LocalCluster, client: Client, shared_clusters: SharedClusters, tmp_path: Path
) -> None:
    rounds.tag_images(cluster, own_images.names())
    async with under_load(cluster, client, shared_clusters.audits, tmp_path) as seen:
        for number in range(UPGRADES):
            seen.took.append(await rounds.turn(cluster, client, number))
            seen.look()
            await seen.slices(1)
    for name, terms in seen.leases.terms.items():
        assert len({term.holder for term in terms}) > len(seen.took), (
            f"each upgrade replaced {name}"
        )
    await rounds.helm(cluster, "test", "alnair")


@pytest.mark.timeout(240)
async def test_what_is_uninstalled_leaves_the_cluster_and_its_node_as_they_were(
    cluster: LocalCluster, client: Client
) -> None:
    places = ("/run", "/var/lib/kubelet/device-plugins", "/etc/cdi")

    async def is_drained() -> bool:
        return not pages(cluster)

    await eventually(is_drained, 60, "what containers had is not taken back")
    assert any(key.startswith("Deployment alnair-system/") for key in await all_objects(client))
    await rounds.helm(cluster, "uninstall", "alnair", "--wait")

    async def left() -> list[str]:
        objects = await all_objects(client)
        return [
            key
            for key, labels in objects.items()
            if "alnair-system/" in key or labels.get("app.kubernetes.io/name") == "alnair"
            if not key.startswith(KEPT)
        ]

    async def is_empty() -> bool:
        return not await left()

    await eventually(is_empty, 60, "objects are left")
    node = await client.get(NODES, NAME)
    keys = {*node["metadata"]["labels"], *node["metadata"].get("annotations", {})}
    assert {key for key in keys if key.startswith(("ai.centaurus.io/", "nvidia.com/"))} == {
        names.REAL_NODE
    }
    assert not set(names.SLICE_RESOURCES) & set(node["status"]["capacity"])
    agents = [one for one in await leases(client) if one == f"{names.AGENT_LEASE_PREFIX}{NAME}"]
    assert agents == []
    files = [
        path
        for path in node_shell.listed(cluster.layout.folder, places)
        if "alnair" in path
        and not path.startswith(("run/alnair-node-ready", "run/cni/", "run/containerd"))
    ]
    assert set(files) <= {"run/alnair"}, "an empty folder, which the kubelet made for a mount"
    mounts = node_shell.run(cluster.layout.folder, "cat", "/proc/self/mounts").splitlines()
    assert [line for line in mounts if "/run/alnair" in line] == []


async def leases(client: Client) -> list[str]:
    """The names of the leases in Alnair's namespace."""
    text = await client.raw("GET", LEASES.collection(names.NAMESPACE))
    return [one["metadata"]["name"] for one in json.loads(text)["items"]]
