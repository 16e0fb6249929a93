"""One real node with two GPUs and our scheduler, which all tests of this folder share."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from alnair.kube.client import Client
from alnair.local.controlplane import LocalCluster
from alnair.local.layout import Layout
from alnair.local.real_node import requirements
from alnair.local.real_node.choice import RealNodeWish
from kit.live.real_pods import RealPods
from kit.live.shared_clusters import SharedClusters


@pytest.fixture
def cluster(cluster_root: Path, shared_clusters: SharedClusters) -> LocalCluster:
    """A cluster with a real node and no simulated one."""
    reason = requirements.refusal(Layout(cluster_root, "gpus"), os.environ)
    if reason is not None:
        pytest.skip(f"no real node can run here: {reason}")

    wish = RealNodeWish(wanted=True, gpus=2, gpu_model="h100")
    return shared_clusters.get("gpus", real_node=wish, scheduler=True)


@pytest.fixture
async def pods(client: Client) -> AsyncIterator[RealPods]:
    """Makes pods that are removed after the test."""
    made = RealPods(client)
    yield made
    await made.clear()
