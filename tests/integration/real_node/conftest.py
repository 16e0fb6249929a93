"""One real node with two GPUs and our scheduler, which all tests of this folder share.

A start costs half a minute of a small machine. So a test leaves the node well, whatever it ended
there, and those that need it no more come last (`tests/lanes.py`).
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import NODES
from alnair.local import nodelist
from alnair.local.controlplane import LocalCluster
from alnair.local.layout import Layout
from alnair.local.own_images import requirements as of_images
from alnair.local.real_node import requirements
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.real_node.settings import AGENT_PORT, NAME
from kit.live.machine_traces import traces
from kit.live.real_pods import RealPods
from kit.live.shared_clusters import SharedClusters
from kit.real_node import installed as alnair_as_pods
from kit.real_node.agent_pages import AgentPages
from kit.real_node.installed import Installed


@pytest.fixture(scope="session")
def machine_before(cluster_root: Path) -> dict[str, list[str]]:
    """What `traces` tells of a machine on which a real node can run, before there is one."""
    reason = requirements.refusal(Layout(cluster_root, "gpus"), os.environ)
    if reason is not None:
        pytest.skip(f"no real node can run here: {reason}")
    return traces()


@pytest.fixture
def cluster(shared_clusters: SharedClusters, machine_before: dict[str, list[str]]) -> LocalCluster:
    """A cluster with a real node and two simulated ones."""
    wish = RealNodeWish(wanted=True, gpus=2, gpu_model="h100")
    simulated = nodelist.alike(2, 8, "A100")
    return shared_clusters.get(
        "gpus", lambda it: it.add_nodes(simulated), real_node=wish, scheduler=True
    )


@pytest.fixture
async def pods(client: Client) -> AsyncIterator[RealPods]:
    """Makes pods that are removed after the test."""
    made = RealPods(client)
    yield made
    await made.clear()


@pytest.fixture(scope="session")
def installed(shared_clusters: SharedClusters, machine_before: dict[str, list[str]]) -> Installed:
    """A cluster in whose real node Alnair is installed; its last test removes Alnair."""
    if said := of_images.problem():
        pytest.skip(said)
    wish = RealNodeWish(wanted=True, gpus=2, gpu_model="t4", installed=True)
    made = shared_clusters.make(f"installed-{uuid.uuid4().hex[:8]}", real_node=wish)
    return asyncio.run(alnair_as_pods.install(made))


@pytest.fixture
async def address(client: Client) -> str:
    """Of the agent."""
    node = await client.get(NODES, NAME)
    found = node["status"]["addresses"]
    return f"{next(a['address'] for a in found if a['type'] == 'InternalIP')}:{AGENT_PORT}"


@pytest.fixture
def agent(cluster: LocalCluster, address: str) -> AgentPages:
    return AgentPages(cluster, address)
