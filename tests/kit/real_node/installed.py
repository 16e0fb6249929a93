"""Alnair as pods of a cluster's real node, and what was there before it came."""

import asyncio
from typing import Any

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import PODS, Manifest
from alnair.local import nodelist, own_pods
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import images
from alnair.local.real_node.settings import NodeSettings
from alnair.model import names
from kit.command import alnair, last_json
from kit.live.scheduler_process import eventually
from kit.real_node.whole_cluster import seen
from kit.upgrades import rounds
from kit.upgrades.rounds import CHART


class Installed:
    """A cluster in which Alnair is installed.

    Args:
        cluster: With its real node.
        before: What was there before it was.
    """

    def __init__(self, cluster: LocalCluster, before: set[str]) -> None:
        self.cluster = cluster
        self.before = before

    @property
    def host_address(self) -> str:
        """By which pods reach what runs on this machine."""
        of = self.cluster
        state = of.remembered()
        assert state is not None
        assert state.real_node is not None
        real = state.real_node
        return NodeSettings(of.layout, real.slot, real.gpus, real.gpu_model, 0).host_address

    async def again(self, **options: Any) -> None:
        """What `alnair up` with other options makes of the running cluster."""
        of = self.cluster
        await LocalCluster(of.name, root=of.layout.root, **options).up()

    async def upgrade(self, *changes: str) -> None:
        """Upgrade it to other values."""
        options = ("--reset-then-reuse-values", "--wait", *changes)
        await rounds.helm(self.cluster, "upgrade", "alnair", str(CHART), *options)

    async def says(self, *words: str) -> Any:
        """What a command writes of it as JSON, well or not."""
        given = [*words, f"--kubeconfig={self.cluster.kubeconfig()}", "--json"]
        done = await asyncio.to_thread(alnair, *given)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return last_json(done)

    async def workloads(self) -> list[dict[str, Any]]:
        """What `alnair status` says of its pods."""
        found: list[dict[str, Any]] = (await self.says("status"))["installed"]
        return found


async def install(cluster: LocalCluster) -> Installed:
    """Start a cluster with a real node, look at it, and install Alnair."""

    async def nothing(*_: object, **__: object) -> None:
        """Leave the real node without Alnair."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_pods, "ensure", nothing)
        await cluster.up()
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        # What a kubelet writes when it has its first pod is none of ours.
        await runs_to_its_end(client, small("first"))
        before = await seen(cluster, client)
    await cluster.up()
    await cluster.add_nodes(nodelist.alike(3, 8, "A100"))
    return Installed(cluster, before)


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
        "spec": {"containers": [main], **spec},
    }


async def runs_to_its_end(client: Client, pod: Manifest) -> None:
    """A pod is scheduled, runs, and is gone."""
    name = pod["metadata"]["name"]
    await client.create(PODS, pod)

    async def has_ended() -> bool:
        return (await client.get(PODS, name, "default"))["status"]["phase"] == "Succeeded"

    await eventually(has_ended, 60, f"{name} does not run to its end")
    await client.delete(PODS, name, "default", grace_seconds=0)
