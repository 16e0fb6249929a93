"""Elastic Horovod and PyTorch on the real node: a training grows, shrinks and outlives kills.

Every step of the training goes through all of its rows, so that the loss after each step is the
same with any number of workers: that of a job of fixed size, run beside it.
"""

import asyncio
import copy
import itertools
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.resources import (
    CONFIGMAPS,
    JOBS,
    NODES,
    PODGROUPS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Manifest,
)
from alnair.local.components.components import OURS
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.own_images import horovod_image, torch_image
from alnair.local.real_node.settings import NAME as REAL_NODE
from alnair.local.report import NO_REPORT
from alnair.model import names
from kit import training_jobs as jobs
from kit.command import alnair, last_json
from kit.live.moving_torch import NAME as TORCH
from kit.live.moving_torch import MovingTorch
from kit.live.real_pods import NAMESPACE, until
from kit.live.second_node import NAME as SECOND_NODE
from kit.live.second_node import SecondNode
from kit.live.trainings import ON_REAL_NODE, Training

KINDS = {one.kind: one.resource() for one in TRAINING_JOBS}
EVERY = (PODS, STATEFUL_SETS, JOBS, PODGROUPS, SERVICES, CONFIGMAPS, SECRETS)
#: What examples/04-first-elastic-job/train.py does if it is told nothing else.
STEPS = 300
#: Of one that only moves.
FEW = 120
#: Of those that change their size: they do so between two commits.
COMMIT_EVERY = 2
#: Sums of float64, in another order with another number of workers.
EXACT = 1e-9
_FIXED: dict[str, "Learnt"] = {}
SLICE = (4096, 15)
#: Seconds after each step, so that a training lasts until all is tried; and of the grace.
PACE, GRACE = "0.6", 5
#: Horovod's threads ask one another 1,000 times a second otherwise, and take all the processor.
CALM = {"env": [{"name": "HOROVOD_CYCLE_TIME", "value": "4"}]}
#: And whoever waits for the others yields the processor again and again: 400,000 times a second.
PATIENT = """
import importlib, runpy, sys, time
modules = [importlib.import_module(f"horovod.torch{one}") for one in ("", ".mpi_ops", ".optimizer")]
poll, wait = modules[0].poll, modules[0].synchronize
def synchronize(handle):
    while not poll(handle):
        time.sleep(0.002)
    return wait(handle)
for module in modules:
    module.synchronize = synchronize
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Learnt(NamedTuple):
    """The loss after each step, and the norms of the parameters after the last one."""

    losses: list[float]
    parameters: dict[str, float]


@pytest.fixture(scope="module")
def image() -> horovod_image.Built:
    """The image for trainings; it is built at the first time."""
    if said := horovod_image.problem():
        pytest.skip(said)
    try:
        return horovod_image.build(os.environ, NO_REPORT)
    except LocalClusterError as error:
        pytest.skip(str(error))


@pytest.fixture
def node(cluster: LocalCluster, image: horovod_image.Built) -> LocalCluster:
    """The cluster, with the image on its node."""
    real = cluster.real_node()
    assert real is not None
    real.import_archive(image.archive, image.digest)
    return cluster


def with_image(manifest: Manifest, **workers: Any) -> Manifest:
    """The job with our image."""
    made = copy.deepcopy(manifest)
    made["spec"]["launcherSpec"]["image"] = horovod_image.NAME
    made["spec"]["workersSpec"] |= {"image": horovod_image.NAME, **workers}
    return made


async def ended(client: Client, kind: str, name: str) -> None:
    """Wait until a job has succeeded."""

    async def has_ended() -> bool:
        status = (await client.get(KINDS[kind], name, NAMESPACE)).get("status", {})
        assert status.get("phase") != "Failed", status
        return status.get("phase") == "Succeeded"

    await until(has_ended, f"{name} has succeeded", 120)


async def left(client: Client) -> list[str]:
    """Objects that belong to jobs."""
    found = []
    for resource in EVERY:
        listed = (await client.list(resource, NAMESPACE)).items
        mine = (one for one in listed if "Job" in str(one["metadata"].get("labels")))
        found += [f"{resource.kind}/{one['metadata']['name']}" for one in mine]
    return found


async def forgotten(client: Client, kind: str, name: str) -> None:
    """Delete a job; nothing of it is left."""
    await client.delete(KINDS[kind], name, NAMESPACE)

    async def nothing() -> bool:
        return not [one for one in await left(client) if f"-{name}" in one]

    await until(nothing, f"nothing of {name} is left")


async def scale(client: Client, name: str, workers: int) -> None:
    """As `kubectl scale` does."""
    change: Manifest = {"spec": {"replicas": workers}}
    kind = KINDS["ElasticHorovodJob"]
    await client.merge_patch(kind, name, change, NAMESPACE, subresource="scale")


def check_curve(
    steps: list[dict[str, Any]], expected: list[float], lost: int, last: int = STEPS
) -> None:
    """Every step follows the one before, or the last commit if workers were lost."""
    went_back = 0
    for before, after in itertools.pairwise(steps):
        if after["step"] != before["step"] + 1:
            went_back += 1
            assert after["step"] - 1 == before["step"] // COMMIT_EVERY * COMMIT_EVERY, after
    assert went_back <= lost, "only workers that are killed cost steps"
    assert [one["step"] for one in steps][-1] == last
    for one in steps:
        assert one["loss"] == pytest.approx(expected[one["step"] - 1], rel=EXACT), one


@pytest.fixture
async def no_simulated_nodes(node: LocalCluster, client: Client) -> AsyncIterator[None]:
    """No pod goes to a node without containers."""
    names = [one["metadata"]["name"] for one in (await client.list(NODES)).items]
    simulated = [name for name in names if name != REAL_NODE]
    for name in simulated:
        await client.merge_patch(NODES, name, {"spec": {"unschedulable": True}})
    yield
    for name in simulated:
        await client.merge_patch(NODES, name, {"spec": {"unschedulable": None}})


async def sample(node: LocalCluster, client: Client, manifest: Manifest) -> Learnt:
    """Run a manifest of the original, unchanged but for its image; return what it learnt."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    await client.create(KINDS[kind], with_image(manifest), NAMESPACE)
    try:
        await ended(client, kind, name)
        job = Training(client, node, kind, name)
        learnt = Learnt([one["loss"] for one in job.steps()], job.parameters())
    finally:
        await forgotten(client, kind, name)
    return learnt


async def test_a_script_is_submitted_to_real_workers_and_followed_to_its_end(
    node: LocalCluster, client: Client, fixed: Learnt
) -> None:
    where = f"--kubeconfig {node.kubeconfig()} --node-label {names.REAL_NODE}=true"
    image = f"--kind horovod --image {horovod_image.NAME} --pull Never"
    size = f"--workers 2 --gpu-memory {SLICE[0]}Mi --gpu-share {SLICE[1]} --resource cpu=200m"
    words = f"submit {horovod_image.EXAMPLE} --job submitted {where} {image} {size} --json"
    try:
        done = await asyncio.to_thread(alnair, *words.split(), "--", "--steps", 20)
        assert done.returncode == 0, done.stderr
        assert last_json(done)["phase"] == "Succeeded"
        said = done.stderr.splitlines()
        steps = [json.loads(line[line.find("{") :]) for line in said if '"step"' in line]
        assert [one["loss"] for one in steps] == pytest.approx(fixed.losses[:20], rel=EXACT)
        assert {one["workers"] for one in steps} == {2}
        assert any(line.startswith("submitted: Running") for line in said), said
    finally:
        await forgotten(client, "ElasticHorovodJob", "submitted")


@pytest.fixture
async def fixed(node: LocalCluster, client: Client, no_simulated_nodes: None) -> Learnt:
    """What a job of fixed size learnt; it is run once."""
    if node.name not in _FIXED:
        _FIXED[node.name] = await sample(node, client, jobs.ORIGINAL_FIXED)
    return _FIXED[node.name]


async def test_manifests_of_the_original_train_with_another_image_alone(
    node: LocalCluster, client: Client, fixed: Learnt
) -> None:
    assert len(fixed.losses) == STEPS
    assert all(after < before for before, after in itertools.pairwise(fixed.losses)), "it learns"
    learnt = await sample(node, client, jobs.ORIGINAL_ELASTIC)
    assert learnt.losses == pytest.approx(fixed.losses, rel=EXACT)
    assert learnt.parameters == pytest.approx(fixed.parameters, rel=EXACT)
    assert await left(client) == []


async def test_a_training_grows_shrinks_and_outlives_kills_with_the_same_losses(
    node: LocalCluster, client: Client, fixed: Learnt, tmp_path: Path
) -> None:
    try:
        steps, parameters = await through_changes(node, client, tmp_path)
        check_curve(steps, fixed.losses, lost=1)
        assert parameters == pytest.approx(fixed.parameters, rel=EXACT)
        assert await left(client) == []
    finally:
        await client.delete_collection(KINDS["ElasticHorovodJob"], NAMESPACE)


def paced(name: str, folder: Path, steps: int, **workers: Any) -> Manifest:
    """An elastic job of 2 workers; after each step it waits as long as the file `pace` says."""
    (folder / "pace").write_text(PACE)
    (folder / "patient.py").write_text(PATIENT)
    manifest = with_image(
        jobs.elastic(name, 1, 4, targetReplicas=2),
        gpuSlice={"memoryMiB": SLICE[0], "computePercent": SLICE[1]},
        **ON_REAL_NODE,
        volumes=[{"name": "pace", "hostPath": {"path": str(folder)}}],
        volumeMounts=[{"name": "pace", "mountPath": "/pace"}],
        **workers,
    )
    command = ["python3", "/pace/patient.py", "/examples/train.py", "--pause", "/pace/pace"]
    command += ["--commit-every", str(COMMIT_EVERY), "--steps", str(steps)]
    manifest["spec"]["launcherSpec"] |= {"pythonCommand": command, **CALM, **ON_REAL_NODE}
    # Longer than what lies between two commits, at which workers leave.
    manifest["spec"]["elasticPolicy"] = {"scaleDownGraceSeconds": GRACE}
    return manifest


async def through_changes(
    node: LocalCluster, client: Client, folder: Path
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Train while workers come, go and are killed; return the steps, and the parameters' norms."""
    kind, name = "ElasticHorovodJob", "elastic"
    manifest = paced(name, folder, STEPS)
    job = Training(client, node, kind, name)
    await client.create(KINDS[kind], manifest, NAMESPACE)
    await job.trains(2)
    await job.has_slices(2, SLICE)
    await scale(client, name, 4)
    await job.trains(4)
    await job.has_slices(4, SLICE)
    for component in (*OURS, "kubelet"):
        await node.stop(component, signal.SIGKILL)
    await job.trains(4)
    await LocalCluster(node.name, root=node.layout.root).up()
    await scale(client, name, 1)
    await job.trains(1)
    await job.has_slices(1, SLICE)
    await scale(client, name, 3)
    await job.trains(3)
    await job.has_slices(3, SLICE)
    before = len(job.steps())
    await job.kill(1)
    await job.trains(2, since=before)
    await job.trains(3)
    (folder / "pace").write_text("0")
    await ended(client, kind, name)
    await job.has_slices(0, SLICE)
    found = job.steps(), job.parameters()
    await forgotten(client, kind, name)
    return found


@pytest.fixture(scope="module")
def torch() -> torch_image.Built:
    """The image with a current PyTorch: built by the first run on a machine."""
    return torch_image.build(os.environ, NO_REPORT)


@pytest.mark.timeout(1200)
async def test_trainings_move_to_another_node_and_lose_no_step_that_is_kept(
    node: LocalCluster,
    client: Client,
    image: horovod_image.Built,
    torch: torch_image.Built,
    fixed: Learnt,
    tmp_path: Path,
) -> None:
    kind, name = "ElasticHorovodJob", "moving"
    first = node.real_node()
    assert first is not None
    second = SecondNode(node)
    # One on each node, so that one has to move; the launcher stays.
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {kind: name, "role": "worker"}},
    }
    preferred = [{"weight": 100, "podAffinityTerm": apart}]
    manifest = paced(
        name,
        tmp_path,
        FEW,
        affinity={
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        },
    )
    manifest["spec"]["launcherSpec"]["nodeSelector"] = {"kubernetes.io/hostname": REAL_NODE}
    job, by_torchrun = Training(client, node, kind, name), MovingTorch(client, tmp_path / "torch")
    words = ("--off", REAL_NODE, "--kubeconfig", node.kubeconfig(), "--json")
    try:
        await second.up(client)
        imports = ((second.node, image), (second.node, torch), (first, torch))
        for one, made in imports:
            await asyncio.to_thread(one.import_archive, made.archive, made.digest)
        await by_torchrun.begins(REAL_NODE)
        await client.create(KINDS[kind], manifest, NAMESPACE)
        await job.trains(2)
        await by_torchrun.trains_up_to_its_move()
        assert set(await nodes_of(job)) == {REAL_NODE, SECOND_NODE}
        assert await by_torchrun.node() == REAL_NODE
        moves = (asyncio.to_thread(alnair, "migrate", one, *words) for one in (name, TORCH))
        for moved in await asyncio.gather(*moves):
            assert moved.returncode == 0, moved.stderr
        assert set(await nodes_of(job)) == {SECOND_NODE}
        assert await by_torchrun.node() == SECOND_NODE
        await job.trains(2)
        (tmp_path / "pace").write_text("0")
        await by_torchrun.ends_with_no_step_lost_but_those_since_its_checkpoint()
        await ended(client, kind, name)
        check_curve(job.steps(), fixed.losses, lost=0, last=FEW)
    finally:
        try:
            await forgotten(client, kind, name)
            await forgotten(client, "ElasticTorchJob", TORCH)
        finally:
            await second.down(client)


async def nodes_of(job: Training) -> list[str]:
    """Where the workers are that stay."""
    label = f"{job.selector},role=worker"
    found = (await job.client.list(PODS, NAMESPACE, label_selector=label)).items
    return [one["spec"]["nodeName"] for one in found if "deletionTimestamp" not in one["metadata"]]
