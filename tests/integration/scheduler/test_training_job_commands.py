"""The verbs for training jobs on a real API server: submitted, scaled, suspended, moved."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.resources import CONFIGMAPS, NODES, PODS, Manifest
from alnair.local.controlplane import LocalCluster
from kit import training_jobs as jobs
from kit.command import COMMAND, alnair, last_json
from kit.live.scheduler_process import (
    SHORT_LEASE,
    StartController,
    StartScheduler,
    eventually,
)

#: Of each of the cluster's six nodes.
GPUS: Final = 4
KINDS: Final = {one.kind: one.resource() for one in TRAINING_JOBS}
#: Pods of a Job end at once on simulated nodes, but for this.
LASTS: Final = {"annotations": {"ai.centaurus.io/simulated-duration": "3600s"}}


class Desk:
    """Where a user sits: the command, in a namespace of the cluster."""

    def __init__(self, cluster: LocalCluster, client: Client, namespace: str) -> None:
        self.kubeconfig = cluster.kubeconfig()
        self.client = client
        self.namespace = namespace

    def words(self, said: str) -> list[str]:
        """The words of a command; where it goes comes before those of a program of its own."""
        before, dashes, after = said.partition(" -- ")
        place = ["--kubeconfig", str(self.kubeconfig)]
        if not before.startswith("rebalance"):
            place += ["-n", self.namespace]
        return [*before.split(), *place, *(["--", *after.split()] if dashes else [])]

    async def run(self, said: str) -> Result:
        """Run a verb in this process: another one takes longer to begin than most verbs do."""
        words = self.words(said)
        app = main.build([words[0]])
        return await asyncio.to_thread(CliRunner().invoke, app, words)

    async def told(self, said: str) -> Any:
        done = await self.run(f"{said} --json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout.splitlines()[-1])

    async def refused(self, said: str) -> str:
        """What the command says when it cannot; nothing is made then."""
        done = await self.run(said)
        assert done.exit_code == 1, done.output
        return done.stderr

    async def workers(self, name: str) -> dict[str, str]:
        """Node by name of the workers that run."""
        found = await self.client.list(PODS, self.namespace, label_selector="role=worker")
        return {
            one["metadata"]["name"]: one["spec"].get("nodeName", "")
            for one in found.items
            if name in one["metadata"]["labels"].values()
            and not one["metadata"].get("deletionTimestamp")
        }

    async def launcher(self) -> str:
        found = await self.client.list(PODS, self.namespace, label_selector="role=launcher")
        return ",".join(one["metadata"]["uid"] for one in found.items)


@pytest.fixture
def desk(gpu_cluster: LocalCluster, admin: Client, namespace: str) -> Desk:
    return Desk(gpu_cluster, admin, namespace)


async def interrupted(words: list[str], when: bytes) -> tuple[int, str]:
    """Run a command until it has said this, and interrupt it; returns its end and its words."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    said = b""
    while when not in said:
        line = await asyncio.wait_for(process.stderr.readline(), 60)
        assert line, said.decode()
        said += line
    process.send_signal(signal.SIGINT)
    said += await process.stderr.read()
    return await process.wait(), said.decode()


def lasting(manifest: Manifest) -> Manifest:
    """The job, whose pods do not end by themselves."""
    spec = manifest["spec"]
    spec["workersSpec"] |= LASTS
    if "launcherSpec" in spec:
        spec["launcherSpec"] |= LASTS
    spec["elasticPolicy"] = {"scaleDownGraceSeconds": 1}
    return manifest


async def test_a_script_is_submitted_followed_to_its_end_and_goes_with_its_job(
    desk: Desk, tmp_path: Path, start_scheduler: StartScheduler, start_controller: StartController
) -> None:
    script = tmp_path / "Train_MNIST.py"
    script.write_text("print('hello')\n")
    base = f"submit {script} --image example/torch:1"
    # Nothing is made by what is refused.
    assert "no PriorityClass system-node-critcal" in await desk.refused(
        f"{base} --priority system-node-critcal"
    )
    assert "no node has the resource memry: there are memory" in await desk.refused(
        f"{base} --resource memry=4Gi"
    )
    said = await desk.refused(f"{base} --scheduler Alnair")
    assert "spec.schedulerName is no name of a scheduler" in said
    elsewhere = Desk.__new__(Desk)
    elsewhere.kubeconfig, elsewhere.namespace = desk.kubeconfig, f"{desk.namespace}x"
    assert f"did you mean {desk.namespace}" in await elsewhere.refused(base)
    listed = await desk.client.list(CONFIGMAPS, desk.namespace, label_selector="ElasticTorchJob")
    assert (listed.items, (await desk.told("jobs"))["jobs"]) == ([], [])
    start_scheduler()
    start_controller()
    words = desk.words(f"{base} --workers 2..3 --json -- --epochs 3")
    followed = await asyncio.to_thread(alnair, *words)
    assert followed.returncode == 0, followed.stderr
    made = last_json(followed)
    assert (made["name"], made["phase"]) == ("train-mnist", "Succeeded")
    manifest = await desk.client.get(KINDS["ElasticTorchJob"], "train-mnist", desk.namespace)
    words = ["python3", "-u", "/alnair-script/Train_MNIST.py", "--epochs", "3"]
    assert manifest["spec"]["workersSpec"]["pythonCommand"] == words
    first = await desk.client.get(CONFIGMAPS, "train-mnist-script", desk.namespace)
    assert first["data"] == {"Train_MNIST.py": "print('hello')\n"}
    assert first["metadata"]["ownerReferences"][0]["uid"] == manifest["metadata"]["uid"]
    assert "is there already" in (said := await desk.refused(base))
    assert "choose another --job" in said
    wished = await desk.run(
        f"{base} --job w --detach --gpu-type A1000 --scheduler alnair-sched --workers 99"
    )
    await desk.client.delete(KINDS["ElasticTorchJob"], "w", desk.namespace)
    assert "alnair-sched is no profile of Alnair's; alnair-scheduler is" in wished.stderr
    assert "no node has GPUs of the model A1000: there are" in wished.stderr
    assert "it needs 99 workers at least, and if all GPUs were free there would be room for " in (
        wished.stderr
    )
    code, said = await interrupted(desk.words(f"{base} --replace --gpus 64"), b"0 of 1 workers (1)")
    assert code == 130, said
    assert "a worker has 64 GPUs, and the largest node 4" in said
    assert "train-mnist goes on: follow it with 'alnair logs train-mnist" in said
    second = await desk.client.get(CONFIGMAPS, "train-mnist-script", desk.namespace)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    await desk.client.delete(KINDS["ElasticTorchJob"], "train-mnist", desk.namespace)

    async def gone() -> bool:
        found = await desk.client.list(CONFIGMAPS, desk.namespace)
        return not any("script" in one["metadata"]["name"] for one in found.items)

    await eventually(gone, what="the script of a job that was deleted")


async def test_a_running_job_is_scaled_moved_though_its_controller_is_killed_and_suspended(
    desk: Desk, start_scheduler: StartScheduler, start_controller: StartController
) -> None:
    start_scheduler()
    controller = start_controller(*SHORT_LEASE)
    kind = KINDS["ElasticHorovodJob"]
    manifest = jobs.elastic("mnist", 2, 3, targetReplicas=2)
    await desk.client.create(kind, lasting(manifest), desk.namespace)
    assert "did you mean mnist?" in await desk.refused("scale mnsit 3")
    assert "add --max 9" in await desk.refused("scale mnist 9")
    assert (await desk.told("scale mnist 2 --wait"))["ready"] == 2
    before, launcher = await desk.workers("mnist"), await desk.launcher()
    [node] = set(before.values())
    assert "is on node nowhere: they are on" in await desk.refused("migrate mnist --off nowhere")
    # It has none to spare: it has one more meanwhile.
    plan = (await desk.told(f"migrate mnist --off {node} --dry-run"))["plan"]
    assert [step["what"] for step in plan["steps"]] == ["grow", "move", "move", "shrink"]
    await desk.client.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
    await desk.told("migrate mnist --detach")

    async def has_begun() -> bool:
        return len(await desk.workers("mnist")) == 3

    await eventually(has_begun, what="one worker more")
    controller.signal(signal.SIGKILL)
    start_controller(*SHORT_LEASE)

    async def has_left() -> bool:
        job = await desk.client.get(kind, "mnist", desk.namespace)
        is_done = job["status"].get("migration", {}).get("done", False)
        return is_done and len(await desk.workers("mnist")) == 2

    await eventually(has_left, 60, what="a migration that is done, and no worker more")
    assert node not in (await desk.workers("mnist")).values()
    assert sorted(await desk.workers("mnist")) == sorted(before), "under their own names"
    assert await desk.launcher() == launcher, "the training was not begun anew"
    assert sum((await desk.told("jobs ehj/mnist"))["nodes"].values()) == 2
    # Rebalancing moves it in the same way, once it has one to spare.
    assert (await desk.told("scale mnist 2 --min 1 --wait"))["least"] == 1
    node = min((await desk.workers("mnist")).values())
    done = await desk.run(f"rebalance --node {node} --free-gpus {GPUS} --apply")
    assert f"ElasticHorovodJob {desk.namespace}/mnist left {node}" in done.stderr, done.output
    assert node not in (await desk.workers("mnist")).values()
    assert await desk.launcher() == launcher
    assert (await desk.told("suspend mnist --wait"))["phase"] == "Suspended"
    assert await desk.workers("mnist") == {}
    assert "no pod with a log now (Suspended)" in await desk.refused("logs mnist")
    assert (await desk.told("resume mnist --wait"))["phase"] in ("Running", "Scaling")
    await desk.client.delete(kind, "mnist", desk.namespace)
    # Of torchrun, all workers begin anew elsewhere.
    kind = KINDS["ElasticTorchJob"]
    await desk.client.create(kind, lasting(jobs.torch("llama", 2, 2)), desk.namespace)
    assert (await desk.told("scale llama 2 --wait"))["ready"] == 2
    [node] = set((await desk.workers("llama")).values())
    moved = await desk.told(f"migrate llama --off {node} --timeout 60")
    assert moved["job"]["migration"] == ""
    assert node not in (await desk.workers("llama")).values()
    await desk.client.delete(kind, "llama", desk.namespace)
