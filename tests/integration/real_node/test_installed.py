"""Alnair as an operator has it: pods, by Helm; upgraded under tenants, and removed."""

import asyncio
import json
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NODES, PODS
from alnair.local import release
from alnair.local.controlplane import LocalCluster
from alnair.local.own_images import requirements as of_images
from alnair.local.programs.clients import client as program
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.real_node.settings import NAME
from alnair.local.report import NO_REPORT
from alnair.model import names
from kit.live.all_objects import all_objects
from kit.live.scheduler_process import eventually
from kit.live.shared_clusters import SharedClusters, discard
from kit.real_node import node_shell
from kit.real_node.trying_tenants import is_held, pages, runs, tenant

CHART = Path(__file__).parents[3] / "charts" / "alnair"
WANTED = {"a": (2000, 30), "b": (3000, 0)}
#: How often it is upgraded; `ALNAIR_UPGRADES=30` for a longer look.
UPGRADES = int(os.environ.get("ALNAIR_UPGRADES", "2"))
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
        yield made
    finally:
        asyncio.run(discard(made))


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        yield client


async def helm(cluster: LocalCluster, *arguments: str) -> str:
    """What Helm says, when it has done it."""
    path = await asyncio.to_thread(program, "helm", os.environ, NO_REPORT)
    command = [path, *arguments, "--namespace=alnair-system"]
    found = await asyncio.to_thread(
        subprocess.run,
        [*command, f"--kubeconfig={cluster.kubeconfig()}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.mark.timeout(300 + 30 * UPGRADES)
async def test_tenants_keep_running_and_limited_over_upgrades_and_rollbacks(
    cluster: LocalCluster, client: Client
) -> None:
    for name, (mib, percent) in WANTED.items():
        limits = {names.VGPU_MEMORY: str(mib)}
        limits |= {names.VGPU_COMPUTE: str(percent)} if percent else {}
        await client.create(PODS, tenant(name, limits))
    before = {name: (await runs(client, name))["containerID"] for name in WANTED}
    for name, (mib, _) in WANTED.items():
        await is_held(client, name, mib)
    held = {name: page[:2] for name, page in pages(cluster).items()}
    assert sorted(mib for mib, _ in held.values()) == [2000, 3000]
    leaders = set()
    for number in range(UPGRADES):
        if number % 2:
            await helm(cluster, "rollback", "alnair", "--wait")
        else:
            changed = [f"{part}.podAnnotations.upgrade={number}" for part in ("agent", "scheduler")]
            options = ("--reset-then-reuse-values", "--wait", f"--set={','.join(changed)}")
            await helm(cluster, "upgrade", "alnair", str(CHART), *options)
        await release.agents_ready(client)
        assert {name: page[:2] for name, page in pages(cluster).items()} == held
        for name, (mib, _) in WANTED.items():
            await is_held(client, name, mib)
        assert {name: (await runs(client, name))["containerID"] for name in before} == before

        # And those who came after know who has what: what is left is given out once.
        extra = f"extra-{number}"
        await client.create(PODS, tenant(extra, {names.VGPU_MEMORY: "1000"}))
        await runs(client, extra)
        await client.delete(PODS, extra, "default")
        lease = await client.get(LEASES, names.SCHEDULER, names.NAMESPACE)
        leaders.add(lease["spec"]["holderIdentity"])
    assert len(leaders) == UPGRADES, "each upgrade replaced the scheduler"
    await helm(cluster, "test", "alnair")
    for name in WANTED:
        await client.delete(PODS, name, "default")


@pytest.mark.timeout(240)
async def test_what_is_uninstalled_leaves_the_cluster_and_its_node_as_they_were(
    cluster: LocalCluster, client: Client
) -> None:
    places = ("/run", "/var/lib/kubelet/device-plugins", "/etc/cdi")

    async def is_drained() -> bool:
        return not pages(cluster)

    await eventually(is_drained, 60, "what containers had is not taken back")
    assert any(key.startswith("Deployment alnair-system/") for key in await all_objects(client))
    await helm(cluster, "uninstall", "alnair", "--wait")

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
