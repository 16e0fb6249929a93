"""Alnair as pods over its life: seen, led by another, alone, and beside the cluster."""

import asyncio
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import LEASES, PODS, Manifest
from alnair.local.components.components import FULL
from alnair.local.controlplane import LocalCluster
from alnair.local.own_images import requirements as of_images
from alnair.local.programs.clients import client as program
from alnair.local.real_node import images
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.report import NO_REPORT
from alnair.model import names
from kit.command import alnair, last_json
from kit.live.scheduler_process import eventually
from kit.live.shared_clusters import SharedClusters, discard
from kit.real_node.trying_tenants import is_held, runs, tenant

CHART = Path(__file__).parents[3] / "charts" / "alnair"
WISH = RealNodeWish(wanted=True, gpus=2, gpu_model="t4", installed=True)
SELECTOR = "app.kubernetes.io/component=scheduler"


class Installed:
    """A cluster in which Alnair is installed."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster

    async def again(self, **options: Any) -> None:
        """What `alnair up` with other options makes of the running cluster."""
        of = self.cluster
        await LocalCluster(of.name, root=of.layout.root, **options).up()

    async def helm(self, *arguments: str) -> None:
        """Helm does this."""
        path = await asyncio.to_thread(program, "helm", os.environ, NO_REPORT)
        options = ("--namespace=alnair-system", f"--kubeconfig={self.cluster.kubeconfig()}")
        command = [path, *arguments, *options]
        found = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stdout + found.stderr

    async def status(self, *options: str, code: int = 0) -> dict[str, Any]:
        """What `alnair status` says of it."""
        given = [*options, f"--kubeconfig={self.cluster.kubeconfig()}", "--json"]
        done = await asyncio.to_thread(alnair, "status", *given)
        assert done.returncode == code, done.stdout + done.stderr
        found: dict[str, Any] = last_json(done)
        return found


@pytest.fixture(scope="module")
def installed(shared_clusters: SharedClusters, machine_before: object) -> Iterator[Installed]:
    """A cluster in whose real node Alnair is installed; it is gone when these tests are done."""
    if said := of_images.problem():
        pytest.skip(said)
    made = shared_clusters.make(f"life-{uuid.uuid4().hex[:8]}", real_node=WISH)

    try:
        asyncio.run(made.up())
        yield Installed(made)
    finally:
        asyncio.run(discard(made))


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with Client(client_config.load(installed.cluster.kubeconfig())) as client:
        yield client


def small(name: str, **spec: Any) -> Manifest:
    """A pod that ends at once."""
    main = {"name": "main", "image": images.PYTHON, "imagePullPolicy": "Never"}
    main |= {"command": ["python3", "-c", ""]}
    spec = {"restartPolicy": "Never", "nodeSelector": {names.REAL_NODE: "true"}, **spec}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "containers": [main]},
    }


async def runs_to_its_end(client: Client, pod: Manifest) -> None:
    """A pod is scheduled, runs, and is gone."""
    name = pod["metadata"]["name"]
    await client.create(PODS, pod)

    async def has_ended() -> bool:
        return (await client.get(PODS, name, "default"))["status"]["phase"] == "Succeeded"

    await eventually(has_ended, 60, f"{name} does not run to its end")
    await client.delete(PODS, name, "default", grace_seconds=0)


async def leader(client: Client) -> str:
    """The pod that leads; empty while none does."""
    lease = await client.get(LEASES, names.SCHEDULER, names.NAMESPACE)
    return lease["spec"].get("holderIdentity") or ""


async def schedulers(client: Client) -> dict[str, Manifest]:
    """The scheduler's pods, by name."""
    found = (await client.list(PODS, names.NAMESPACE, label_selector=SELECTOR)).items
    return {one["metadata"]["name"]: one for one in found}


async def test_status_shows_pods_their_version_and_their_leader(
    installed: Installed, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (await installed.status())["installed"]
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


@pytest.mark.timeout(180)
async def test_where_the_leader_is_killed_the_other_replica_leads(
    installed: Installed, client: Client
) -> None:
    options = ("--reset-then-reuse-values", "--wait", "--set=scheduler.replicas=2")
    await installed.helm("upgrade", "alnair", str(CHART), *options)
    pods = await schedulers(client)
    assert len(pods) == 2
    first = await leader(client)
    assert first in pods
    await client.delete(PODS, first, names.NAMESPACE, grace_seconds=0)

    async def is_led() -> bool:
        return await leader(client) not in ("", first)

    await eventually(is_led, 60, "nobody else leads")
    assert await leader(client) in pods, "the one that stood by, not the successor"
    await runs_to_its_end(client, small("after", schedulerName=names.SCHEDULER))


@pytest.mark.timeout(240)
async def test_without_kube_scheduler_all_pods_are_scheduled_by_the_installed_one(
    installed: Installed, client: Client
) -> None:
    await installed.again(components=[one for one in FULL if one != "kube-scheduler"])
    assert "kube-scheduler" not in installed.cluster.running()
    await runs_to_its_end(client, small("names-none"))
    # It schedules its own successors, and says what kube-scheduler would do beyond.
    controllers = "app.kubernetes.io/component=controller"
    for pod in (await client.list(PODS, names.NAMESPACE, label_selector=controllers)).items:
        await client.delete(PODS, pod["metadata"]["name"], names.NAMESPACE, grace_seconds=0)

    async def is_well() -> bool:
        found = {one["name"]: one for one in (await installed_now(installed))}
        return not found["alnair-controller"]["problem"]

    await eventually(is_well, 60, "the controller is not scheduled anew")
    log = PODS.item(await leader(client), names.NAMESPACE, "log")
    assert "pods with resourceClaims are refused" in (await client.raw("GET", log)).decode()


async def installed_now(installed: Installed) -> list[dict[str, Any]]:
    """What `alnair status` says of the pods, well or not."""
    given = [f"--kubeconfig={installed.cluster.kubeconfig()}", "--json"]
    done = await asyncio.to_thread(alnair, "status", *given)
    found: list[dict[str, Any]] = last_json(done)["installed"]
    return found


@pytest.mark.timeout(300)
async def test_pods_become_processes_and_pods_again(installed: Installed, client: Client) -> None:
    node = RealNodeWish(installed=False)
    await installed.again(real_node=node, scheduler=True, components=FULL)
    assert await installed_now(installed) == []
    running = installed.cluster.running()
    assert {"alnair-scheduler", "alnair-controller", "agent"} <= {*running}
    await client.create(PODS, tenant("a", {names.VGPU_MEMORY: "2000"}))
    await runs(client, "a")
    await is_held(client, "a", 2000)

    await client.delete(PODS, "a", "default", grace_seconds=0)

    await installed.again(real_node=RealNodeWish(installed=True), scheduler=False)
    assert {"alnair-scheduler", "alnair-controller", "agent"}.isdisjoint(
        installed.cluster.running()
    )

    async def is_well() -> bool:
        return not any(one["problem"] for one in await installed_now(installed))

    await eventually(is_well, 60, "the pods are not well after the processes")
