"""A full cluster with our scheduler, and a small trace."""

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import PODS
from alnair.local.controlplane import LocalCluster
from kit.live.shared_clusters import SharedClusters

#: Ten of them have the model that some pods name, and room for all that asks for GPUs.
NODES = 14
#: Of 100 pods 9 are too large for any node, and 5 name a model that no node has.
COUNT = 100


@pytest.fixture
def replay_cluster(shared_clusters: SharedClusters) -> LocalCluster:
    """A full cluster with our scheduler as one of its components."""
    return shared_clusters.get("rp", scheduler=True)


@pytest.fixture
async def admin(replay_cluster: LocalCluster) -> AsyncIterator[Client]:
    """Our client as the administrator of that cluster."""
    async with Client(client_config.load(replay_cluster.kubeconfig())) as client:
        yield client


@pytest.fixture
async def small_trace(
    tmp_path: Path, admin: Client
) -> AsyncIterator[Callable[..., tuple[object, ...]]]:
    """Writes a small trace; returns the options that replay it in a namespace of its own.

    The pods are gone after the test, for the next one needs the room.
    """
    made: list[str] = []

    def write(
        *more: object, namespace: str = "replay", cpu_only: bool = False
    ) -> tuple[object, ...]:
        nodes = ["sn,cpu_milli,memory_mib,gpu,model"]
        nodes += [f"rp-{i:02},96000,393216,8,{'T4' if i % 4 else 'G2'}" for i in range(NODES)]
        pods = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"]
        for i in range(COUNT):
            milli = 1000 if i % 3 else 460
            spec = "T4" if i % 10 == 1 else "A10" if i % 20 == 3 else ""
            cpu = 200_000 if i % 11 == 10 else 1500
            gpus = "0,0," if cpu_only or (i % 7 == 6 and not spec) else f"1,{milli},{spec}"
            pods.append(f"p{i:03},{cpu},2048,{gpus}")
        (tmp_path / "nodes.csv").write_text("\n".join(nodes) + "\n")
        (tmp_path / "pods.csv").write_text("\n".join(pods) + "\n")
        files = ("--trace", tmp_path / "nodes.csv", "--pods", tmp_path / "pods.csv")
        made.append(f"{namespace}-{uuid.uuid4().hex[:6]}")
        return (*files, "--namespace", made[-1], *more)

    yield write
    for name in made:
        await admin.delete_collection(PODS, name, grace_seconds=0)
