"""A real control plane for the tests: one cluster per run, taken down at the end."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path

import pytest

from alnair.kube import config
from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES
from alnair.local.components import BARE
from alnair.local.controlplane import LocalCluster

ClusterFactory = Callable[..., LocalCluster]
_ROOT = pytest.StashKey[Path]()
#: Bytes of the end of each log that a failing test shows.
_SHOWN = 3000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the end of the clusters' logs beside a failure: they are removed with the clusters."""
    report = yield
    root = item.config.stash.get(_ROOT, None)
    if report.failed and root is not None:
        for log in sorted(root.glob("*/logs/*.log")):
            text = log.read_bytes()[-_SHOWN:].decode(errors="replace")
            report.sections.append((f"{log.parent.parent.name}: {log.name}", text))
    return report


@pytest.fixture(scope="session")
def cluster_root(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """The folder of all clusters of this run; what still runs in it at the end is stopped."""
    root = request.config.stash[_ROOT] = tmp_path_factory.mktemp("clusters")
    yield root
    for folder in root.glob("*/state.json"):
        asyncio.run(LocalCluster(folder.parent.name, root=root).down())


@pytest.fixture(scope="session")
def cluster(cluster_root: Path) -> LocalCluster:
    """A full cluster: all but our own scheduler; without nodes."""
    cluster = LocalCluster(f"lc-{uuid.uuid4().hex[:8]}", root=cluster_root)
    cluster.prepare()
    asyncio.run(cluster.up())
    return cluster


@pytest.fixture
def make_cluster(cluster_root: Path) -> Iterator[ClusterFactory]:
    """Makes further clusters, by default bare ones (etcd and API server), for this test alone."""
    made: list[LocalCluster] = []

    def make(name: str | None = None, **options: object) -> LocalCluster:
        options.setdefault("components", BARE)
        made.append(
            LocalCluster(name or f"lc-{uuid.uuid4().hex[:8]}", root=cluster_root, **options)
        )
        return made[-1]

    yield make
    for cluster in made:
        asyncio.run(cluster.down())


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    """Our client, as the cluster's administrator."""
    async with Client(config.load(cluster.kubeconfig())) as client:
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
