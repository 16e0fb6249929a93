"""A cluster with simulated GPU nodes, and scheduler processes that tests start and kill."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists
from alnair.kube.resources import LEASES, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.local.nodelist import alike
from alnair.model import names
from kit.live.differential import Judges, start
from kit.live.kube_scheduler import Extender
from kit.live.scheduler_process import (
    ControllerProcess,
    SchedulerProcess,
    StartController,
    StartScheduler,
    eventually,
)
from kit.live.shared_clusters import SharedClusters

#: Small enough to be filled by a few pods.
NODE_COUNT, GPUS = 6, 4


@pytest.fixture
def gpu_cluster(shared_clusters: SharedClusters) -> LocalCluster:
    """A full cluster with a few simulated GPU nodes, for the tests of the live scheduler."""
    return shared_clusters.get("sc", lambda it: it.add_nodes(alike(NODE_COUNT, GPUS, "T4")))


@pytest.fixture(scope="session")
def extender() -> Iterator[Extender]:
    """What the real kube-scheduler asks at the end, so that it never binds."""
    with Extender() as extender:
        yield extender


@pytest.fixture
def judges(
    shared_clusters: SharedClusters, extender: Extender, tmp_path_factory: pytest.TempPathFactory
) -> Judges:
    """A bare cluster whose pods the real kube-scheduler judges, and never binds."""
    folder = tmp_path_factory.mktemp("kube-scheduler")
    cluster = shared_clusters.get("diff", lambda it: start(it, extender, folder), components=BARE)
    return Judges(cluster, extender)


@pytest.fixture
def start_scheduler(gpu_cluster: LocalCluster, tmp_path: Path) -> Iterator[StartScheduler]:
    """Starts scheduler processes; those still alive at the end are killed."""
    started: list[SchedulerProcess] = []

    def start(*flags: str) -> SchedulerProcess:
        identity = f"scheduler-{len(started)}"
        started.append(SchedulerProcess(gpu_cluster, tmp_path, identity, *flags))
        return started[-1]

    yield start
    for process in started:
        process.close()
        print(process.log.read_text()[-4000:])


@pytest.fixture
def start_controller(gpu_cluster: LocalCluster, tmp_path: Path) -> Iterator[StartController]:
    """Starts controller processes; those still alive at the end are killed."""
    started: list[ControllerProcess] = []

    def start(*flags: str) -> ControllerProcess:
        identity = f"controller-{len(started)}"
        started.append(ControllerProcess(gpu_cluster, tmp_path, identity, *flags))
        return started[-1]

    yield start
    for process in started:
        process.close()
        print(process.log.read_text()[-4000:])


@pytest.fixture
async def admin(gpu_cluster: LocalCluster) -> AsyncIterator[Client]:
    """Our client as the administrator of the GPU cluster; no lease is left from another test."""
    async with Client(client_config.load(gpu_cluster.kubeconfig())) as client:
        await client.delete_collection(LEASES, names.NAMESPACE)
        for node in (await client.list(NODES)).items:
            if node["spec"].get("unschedulable"):
                await client.merge_patch(
                    NODES, node["metadata"]["name"], {"spec": {"unschedulable": None}}
                )
        yield client


@pytest.fixture
async def namespace(admin: Client) -> AsyncIterator[str]:
    """A namespace whose pods are gone, and their room free, before the next test."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await admin.create(NAMESPACES, {"metadata": {"name": name}})
    with contextlib.suppress(AlreadyExists):  # pods are refused until somebody has made it
        await admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, name)
    yield name
    await admin.delete(NAMESPACES, name)  # first, so that no controller makes further pods

    async def is_empty() -> bool:
        await admin.delete_collection(PODS, name, grace_seconds=0)
        return not (await admin.list(PODS, name)).items

    await eventually(is_empty, what=f"no pod left in {name}")
