"""What a Job has forgotten is let go on a real API server, and nothing else of it is changed."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from alnair.kube.client import Client
from alnair.kube.resources import PODS, SERVICE_ACCOUNTS
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.processes.controller.elastic.children import TRACKED
from alnair.processes.controller.elastic.orphans import PATIENCE, Orphan, Orphans
from kit.live.shared_clusters import SharedClusters


@pytest.fixture
def cluster(shared_clusters: SharedClusters) -> LocalCluster:
    """One without Kubernetes' Job controller, which lets go pods of no Job that it hears of."""
    return shared_clusters.get("owners", components=BARE)


async def test_only_the_jobs_finalizer_is_taken_off_and_only_of_that_pod(
    client: Client, make_namespace: Callable[[], Awaitable[str]]
) -> None:
    namespace = await make_namespace()
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace)
    meta = {"name": "a-workers-0-x", "finalizers": [TRACKED, "example.com/audit"]}
    spec: dict[str, Any] = {
        "schedulerName": "nobody",
        "containers": [{"name": "c", "image": "none"}],
    }
    made = await client.create(PODS, {"metadata": meta, "spec": spec}, namespace)
    await client.delete(PODS, "a-workers-0-x", namespace)
    uid = made["metadata"]["uid"]
    held = Orphan("a-workers-0-x", uid, "former", "a-workers", is_set=False, held=True)

    async def finalizers_after(orphan: Orphan) -> list[str]:
        orphans = Orphans(client)
        for now in (100.0, 100.0 + PATIENCE):
            await orphans.remove("job", namespace, [orphan], now)
        pod = await client.get(PODS, "a-workers-0-x", namespace)
        return list(pod["metadata"]["finalizers"])

    assert TRACKED in await finalizers_after(msgspec.structs.replace(held, uid="another"))
    assert await finalizers_after(held) == ["example.com/audit"]
    await client.merge_patch(PODS, "a-workers-0-x", {"metadata": {"finalizers": None}}, namespace)
