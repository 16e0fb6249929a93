"""A real PyTorch training grows, shrinks and survives on the real node, run by torchrun."""

import asyncio
import math
import os
import re
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import (
    ELASTIC_TORCH_JOBS,
    JOBS,
    PODGROUPS,
    PODS,
    SERVICES,
    Manifest,
)
from alnair.local.controlplane import LocalCluster
from alnair.local.own_images import torch_image
from alnair.local.own_images.images import Built
from alnair.local.report import NO_REPORT
from kit.live.agent_in_node import agent_status
from kit.live.paced_training import EVERY, PacedTraining
from kit.live.real_pods import NAMESPACE, RealPods, gpu, until

JOB = "paced"
#: Workers are found by it.
LABEL = f"ElasticTorchJob={JOB}"
STEPS = 120
#: Seconds of waiting for one change; each process of PyTorch takes 3 s of CPU to start.
PATIENCE = 300


class Job:
    """The job of this test."""

    def __init__(self, client: Client, training: PacedTraining) -> None:
        self.client = client
        self.training = training

    async def status(self) -> Manifest:
        found = await self.client.get(ELASTIC_TORCH_JOBS, JOB, NAMESPACE)
        return found.get("status") or {}

    async def workers(self, *phases: str) -> dict[int, Manifest]:
        """Its pods by index."""
        found = (await self.client.list(PODS, NAMESPACE, label_selector=LABEL)).items
        label = "batch.kubernetes.io/job-completion-index"
        return {
            int(one["metadata"]["labels"][label]): one
            for one in found
            if one["status"]["phase"] in (phases or ("Running",))
            and "deletionTimestamp" not in one["metadata"]
        }

    async def scale(self, workers: int) -> None:
        """As `kubectl scale` does, until there are as many."""
        body: Manifest = {"spec": {"replicas": workers}}
        await self.client.merge_patch(ELASTIC_TORCH_JOBS, JOB, body, NAMESPACE, subresource="scale")
        await self.becomes(phase="Running", replicas=workers, availableReplicas=workers)

    async def becomes(self, **expected: Any) -> None:
        status: Manifest = {}

        async def is_so() -> bool:
            status.clear()
            status.update(await self.status())
            return all(status.get(key) == value for key, value in expected.items())

        try:
            await until(is_so, f"the status says {expected}", PATIENCE)
        except BaseException:
            print(status)
            raise

    async def trains(self, step: int, processes: int | None = None) -> None:
        """Let it train up to a step, from when it has so many processes, and wait until it has."""

        async def has_processes() -> bool:
            return processes in (None, self.training.processes())

        async def has_trained() -> bool:
            done = self.training.done()
            return bool(done) and done[-1][0] == step

        try:
            # Who waits does not notice that others have gone: one step has them meet.
            self.training.allow(self.training.allowed + 1)
            await until(has_processes, f"it has {processes} processes", PATIENCE)
            self.training.allow(step)
            await until(has_trained, f"step {step}", PATIENCE)
        except BaseException:
            print(*self.training.done()[-30:], await self.workers("Running", "Failed"), sep="\n")
            raise


@pytest.fixture(scope="session")
def image() -> Built:
    """The image with PyTorch: built by the first run on a machine."""
    return torch_image.build(os.environ, NO_REPORT)


def kill(pod: Manifest) -> None:
    """Ends the first process of a container, and so all of it, as nothing inside can."""
    mark = f"\0ALNAIR_POD_IP={pod['status']['podIP']}\0".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # By what it calls itself: the machine's numbers begin anew, so they tell no order.
            is_first = re.search(r"^NSpid:.*\t1$", (folder / "status").read_text(), re.MULTILINE)
            if is_first and mark in b"\0" + (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    (first,) = found
    os.kill(first, signal.SIGKILL)


@pytest.mark.timeout(1200)
async def test_a_training_goes_on_from_its_checkpoints_whatever_comes_and_goes(
    cluster: LocalCluster,
    client: Client,
    pods: RealPods,
    image: Built,
    tmp_path: Path,
) -> None:
    node = cluster.real_node()
    assert node is not None
    await asyncio.to_thread(node.import_archive, image.archive, image.digest)
    training = PacedTraining(tmp_path, STEPS)
    job = Job(client, training)
    some = {"minReplicas": 1, "maxReplicas": 3, "targetReplicas": 2}
    slices = {"gpuSlice": {"memoryMiB": 4096, "computePercent": 20}}
    manifest = training.elastic(JOB, {**some, **slices})
    await client.create(ELASTIC_TORCH_JOBS, manifest, NAMESPACE)
    try:
        await job.trains(25, 2)
        await job.scale(3)
        await job.trains(45, 3)
        workers = await job.workers()
        assert sorted(workers) == [0, 1, 2]
        assert {gpu(one, "worker") for one in workers.values()} <= await gpus(cluster)
        kill(workers[2])
        for component in ("kubelet", "alnair-controller", "alnair-scheduler"):
            await cluster.stop(component, signal.SIGKILL)
        # The others go on, while nobody brings another one.
        await job.trains(55, 2)
        # With the first worker they lose where they meet, and wait in their pods for the next one.
        kill(workers[0])
        await LocalCluster(cluster.name, root=cluster.layout.root).up()
        await job.trains(65, 3)
        # Its address is the youngest, and yet rank 0 is where its log is looked for.
        assert training.worker_of_rank_0() == 0
        await job.scale(1)
        # What it is compared with comes along from here on.
        await pods.create(training.fixed("fixed"))
        await job.trains(85, 1)
        await client.evict(NAMESPACE, (await job.workers())[0]["metadata"]["name"])
        await job.scale(2)
        await job.trains(105, 2)
        training.allow(STEPS)
        await job.becomes(phase="Succeeded", replicas=0)
        for (before, _), (after, _) in pairwise(training.done()):
            assert after in (before + 1, before // EVERY * EVERY + 1), "goes on from a checkpoint"
        assert {step for step, _ in training.done()} == {*range(1, STEPS + 1)}
        await pods.ended("fixed")
        # The same samples in the same order: only the order of summing differs.
        pairs = zip(training.parameters(), training.parameters("fixed"), strict=True)
        assert all(math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-5) for one, other in pairs)

        async def none_has_slices() -> bool:  # the agent hears of their end a moment later
            return not [one for one in await pods_with_slices(cluster) if JOB in one]

        await until(none_has_slices, "what its workers had is taken back")
    finally:
        await client.delete(ELASTIC_TORCH_JOBS, JOB, NAMESPACE)

    async def nothing_is_left() -> bool:
        kinds = (PODS, JOBS, PODGROUPS, SERVICES)
        return not [
            one
            for kind in kinds
            for one in (await client.list(kind, NAMESPACE)).items
            if JOB in one["metadata"]["name"]
        ]

    await until(nothing_is_left, "all that belonged to the job is gone")


async def gpus(cluster: LocalCluster) -> set[str]:
    """The node's GPUs, as its agent knows them."""
    said = await asyncio.to_thread(agent_status, cluster)
    return {one["uuid"] for one in said["gpus"]}


async def pods_with_slices(cluster: LocalCluster) -> set[str]:
    """The pods that hold GPUs, as the agent knows them."""
    said = await asyncio.to_thread(agent_status, cluster)
    return {one["assignment"]["pod"]["name"] for one in said["containers"]}
