"""A bare API server with a few nodes: the checker needs objects, and nobody who acts on them."""

import datetime as dt
import uuid
from collections.abc import AsyncIterator

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS
from alnair.local import nodelist, simnodes
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.local.report import NO_REPORT
from kit.live.shared_clusters import SharedClusters


@pytest.fixture
def objects_cluster(shared_clusters: SharedClusters) -> LocalCluster:
    """A bare cluster with two nodes of two T4s: t4x2-0000 and t4x2-0001."""

    async def add_nodes(cluster: LocalCluster) -> None:
        async with Client(client_config.load(cluster.kubeconfig())) as client:
            nodes = nodelist.alike(2, 2, "T4")
            await simnodes.ensure(client, nodes, dt.datetime.now(dt.UTC), NO_REPORT)

    return shared_clusters.get("ck", add_nodes, components=BARE)


@pytest.fixture
async def admin(objects_cluster: LocalCluster) -> AsyncIterator[Client]:
    """Our client as the administrator of that cluster."""
    async with Client(client_config.load(objects_cluster.kubeconfig())) as client:
        yield client


@pytest.fixture
async def namespace(admin: Client) -> AsyncIterator[str]:
    """A namespace of the test; its pods are gone afterwards."""
    name = f"check-{uuid.uuid4().hex[:8]}"
    await admin.create(NAMESPACES, {"metadata": {"name": name}})
    await admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, name)
    yield name
    await admin.delete_collection(PODS, name, grace_seconds=0)
