"""Real control planes for the tests, taken down when the last test that uses them is done.

Their API servers note what our components ask for. At the end that must be what the file of
recorded requests says, to which a unit test holds the chart's rights.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from kit import rights
from kit.live.audited_requests import requests
from kit.live.scheduler_process import eventually
from kit.live.shared_clusters import SharedClusters, discard
from lanes import lane

ClusterFactory = Callable[..., LocalCluster]
_SHARED = pytest.StashKey[SharedClusters]()
#: Bytes of the end of each log that a failing test shows.
_SHOWN = 3000

# Tests have memory to spare, and no processor: control planes start with a quarter less of it.
os.environ.setdefault("GOGC", "400")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the end of the clusters' logs beside a failure: they are removed with the clusters."""
    report = yield
    shared = item.config.stash.get(_SHARED, None)
    if report.failed and shared is not None:
        for log in sorted(shared.root.glob("*/logs/*.log")):
            text = log.read_bytes()[-_SHOWN:].decode(errors="replace")
            report.sections.append((f"{log.parent.parent.name}: {log.name}", text))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Takes down what the next test does not use: an idle cluster burns a tenth of a core."""
    result = yield
    shared = item.config.stash.get(_SHARED, None)
    if shared is not None and nextitem is not None and lane(nextitem.nodeid) != lane(item.nodeid):
        shared.discard()
    return result


@pytest.fixture(scope="session")
def shared_clusters(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SharedClusters]:
    """All clusters of this process; what still runs at the end is stopped."""
    shared = SharedClusters(tmp_path_factory.mktemp("clusters"))
    request.config.stash[_SHARED] = shared
    yield shared
    shared.discard()
    _judge_requests(shared)


def _judge_requests(shared: SharedClusters) -> None:
    """Fails if a component was refused, or asked for what is not recorded; or records it."""
    asked = set(requests(shared.audits))
    allowed = {(component, right) for component, right, is_allowed in asked if is_allowed}
    # A server that has just been started refuses all for a moment, until it has read the roles; the
    # only request of a kind may fall into it. The chart gives what is recorded.
    refused = {(component, right) for component, right, _ in asked} - allowed
    assert not rights.unknown(refused), "the chart's rights do not suffice"
    if noted := os.environ.get("ALNAIR_RECORD_REQUESTS"):
        rights.note(allowed, Path(noted))
    else:
        new = rights.unknown(allowed)
        assert not new, "a component asks for something new: run make record-requests"


@pytest.fixture(scope="session")
def cluster_root(shared_clusters: SharedClusters) -> Path:
    """The folder of all clusters of this process."""
    return shared_clusters.root


@pytest.fixture
def cluster(shared_clusters: SharedClusters) -> LocalCluster:
    """A full cluster: all but our own scheduler; without nodes."""
    return shared_clusters.get("lc")


@pytest.fixture
def make_cluster(shared_clusters: SharedClusters) -> Iterator[ClusterFactory]:
    """Makes further clusters, by default bare ones (etcd and API server), for this test alone."""
    made: list[LocalCluster] = []

    def make(name: str | None = None, **options: object) -> LocalCluster:
        options.setdefault("components", BARE)
        made.append(shared_clusters.make(name or f"lc-{uuid.uuid4().hex[:8]}", **options))
        return made[-1]

    yield make
    for cluster in made:
        asyncio.run(discard(cluster))


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    """Our client, as the cluster's administrator."""
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        yield client


@pytest.fixture
async def make_namespace(client: Client) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Makes namespaces that are deleted after the test."""
    made: list[str] = []

    async def make(prefix: str = "test") -> str:
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        await client.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )
        made.append(name)
        return name

    yield make
    for name in made:
        await client.delete(NAMESPACES, name)


@pytest.fixture
async def namespace(client: Client, make_namespace: Callable[[], Awaitable[str]]) -> str:
    """A namespace in which pods can be made."""
    name = await make_namespace()

    async def has_account() -> bool:
        return bool((await client.list(SERVICE_ACCOUNTS, name)).items)

    await eventually(has_account)
    return name
