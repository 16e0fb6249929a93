"""A cluster with simulated GPU nodes, and scheduler processes that tests start and kill."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from alnair.kube import config
from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NAMESPACES, NODES, PODS
from alnair.local.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.local.nodelist import alike
from alnair.model import names
from differential_kit import Judges, start
from kube_scheduler import Extender
from scheduler_kit import ControllerProcess, SchedulerProcess, StartController, StartScheduler

#: Small enough to be filled by a few pods.
NODE_COUNT, GPUS = 6, 4


@pytest.fixture(scope="session")
def gpu_cluster(cluster_root: os.PathLike[str]) -> LocalCluster:
    """A full cluster with a few simulated GPU nodes, for the tests of the live scheduler."""
    cluster = LocalCluster(f"sc-{uuid.uuid4().hex[:8]}", root=Path(cluster_root))
    cluster.prepare()

    async def begin() -> None:
        await cluster.up()
        await cluster.add_nodes(alike(NODE_COUNT, GPUS, "T4"))

    asyncio.run(begin())
    return cluster


@pytest.fixture(scope="session")
def judges(
    cluster_root: os.PathLike[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Judges]:
    """A bare cluster whose pods the real kube-scheduler judges, and never binds."""
    name = f"diff-{uuid.uuid4().hex[:8]}"
    cluster = LocalCluster(name, components=BARE, root=Path(cluster_root))
    with Extender() as extender:
        asyncio.run(start(cluster, extender, tmp_path_factory.mktemp("kube-scheduler")))
        yield Judges(cluster, extender)
        asyncio.run(cluster.down())


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
    async with Client(config.load(gpu_cluster.kubeconfig())) as client:
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
    yield name
    await admin.delete_collection(PODS, name, grace_seconds=0)
    await admin.delete(NAMESPACES, name)
