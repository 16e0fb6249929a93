"""Alnair as an operator has it: pods, by Helm; upgraded under load."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.local.own_images import images as own_images
from kit import guide
from kit.live.shared_clusters import SharedClusters
from kit.real_node.installed import Installed
from kit.upgrades import rounds
from kit.upgrades.under_load import under_load

#: How often it is upgraded; `ALNAIR_UPGRADES=30` for a longer look.
UPGRADES = int(os.environ.get("ALNAIR_UPGRADES", "3"))


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with Client(client_config.load(installed.cluster.kubeconfig())) as client:
        yield client


@pytest.mark.timeout(300 + 40 * UPGRADES)
async def test_no_pod_is_lost_and_no_limit_lifted_over_upgrades_and_rollbacks(
    installed: Installed, client: Client, shared_clusters: SharedClusters, tmp_path: Path
) -> None:
    cluster = installed.cluster
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
    said = await rounds.helm(cluster, "test", "alnair")
    assert guide.differs("install.md", "helm test alnair", said) == "", said
