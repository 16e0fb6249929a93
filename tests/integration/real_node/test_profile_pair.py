"""`alnair profile pair --on-cluster`: Jobs on a real node's GPU, measured and removed."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import JOBS, NODES
from alnair.live.pairing.pair_job import LABEL
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import images
from alnair.local.real_node.settings import NAME
from alnair.model import names
from kit.live.real_pods import NAMESPACE, until

TIMES = ("--rounds", "1", "--warm-up", "0.3", "--seconds", "1")


@pytest.fixture(autouse=True)
async def inventory(client: Client) -> None:
    """The agent has told of its GPUs: it may have just begun."""

    async def is_told() -> bool:
        node = await client.get(NODES, NAME)
        return names.GPU_STATIC in node["metadata"].get("annotations", {})

    await until(is_told, "the node tells of its GPUs")


async def start(cluster: LocalCluster, *words: str, node: str = NAME) -> asyncio.subprocess.Process:
    """Begin the command on a node."""
    where = ("--on-cluster", "--node", node, "--image", images.PYTHON, "--namespace", NAMESPACE)
    config = ("--kubeconfig", str(cluster.layout.kubeconfig("admin")))
    # Who runs in the background of a shell is deaf to interrupts, and so are its children.
    hears = ("env", "--default-signal=INT")
    command = (*hears, sys.executable, "-m", "alnair", "profile", "pair", *words, *where, *config)
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def jobs(client: Client) -> list[str]:
    """Jobs of measurements that are there."""
    found = await client.list(JOBS, NAMESPACE, label_selector=LABEL)
    return [one["metadata"]["name"] for one in found.items]


async def test_jobs_that_share_a_gpu_are_measured_and_leave_nothing(
    cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    wrong = await start(cluster, "--suite", node=f"{NAME}x")
    assert f"did you mean {NAME}" in (await wrong.communicate())[1].decode()
    assert wrong.returncode == 1
    table = tmp_path / "pairs.json"
    more = ("--kinds", "compute-bound", "--out", str(table), "--json")
    done = await start(cluster, "--suite", *more, *TIMES)
    said, errors = await asyncio.wait_for(done.communicate(), 120)
    assert done.returncode == 0, errors.decode()
    (found,) = json.loads(said)
    assert found["table"] == "NVIDIA-H100-80GB-HBM3", "as the node's label has it"
    # Two that both fill the GPU have about half of it each; more, the less a busy machine lets one
    # alone fill it.
    assert 0.3 < found["rates"]["rates"][0][0] < 0.9
    assert json.loads(table.read_text())[found["table"]] == found["rates"]
    assert await jobs(client) == []


async def test_an_interrupt_removes_the_jobs_and_one_that_is_killed_has_a_deadline(
    cluster: LocalCluster, client: Client
) -> None:
    words = "python3 -c 'import time; time.sleep(600)'"
    for ending, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        running = await start(cluster, words, words, *TIMES)

        async def is_there() -> bool:
            return bool(await jobs(client))

        await until(is_there, "a Job is made")
        running.send_signal(ending)
        await asyncio.wait_for(running.communicate(), 60)
        assert running.returncode == code
        left = (await client.list(JOBS, NAMESPACE, label_selector=LABEL)).items
        # Both, if the first one runs by the time that it is killed.
        assert bool(left) == (ending == signal.SIGKILL)
    for job in left:
        assert job["spec"]["activeDeadlineSeconds"] < 400
        assert job["spec"]["ttlSecondsAfterFinished"] == 60
        await client.delete(JOBS, job["metadata"]["name"], NAMESPACE, propagation="Background")
