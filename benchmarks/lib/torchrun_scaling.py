"""An ElasticTorchJob that grows and shrinks: seconds of each part of it.

What the agents do is read from their logs, whose lines containerd dates; what the script does, from
lines that it says itself.
"""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import ELASTIC_TORCH_JOBS, Manifest
from alnair.local.controlplane import LocalCluster
from kit.live.agent_in_node import agent_status
from kit.live.paced_training import PacedTraining
from kit.live.real_pods import NAMESPACE
from lib import scaling_parts as parts
from lib.scaling_parts import GRACE, JOB, has_gpus, when

_LABEL = f"ElasticTorchJob={JOB}"
#: Lines of torchrun's agents at the level INFO.
_MEETS, _MET = "Rendezvous'ing worker group", "Rendezvous complete for workers"
#: Has rank 0 of each round say when it came how far; a step of its own takes 20 ms.
_PROGRAM = """
import json, os, sys, time
def say(what):
    if os.environ["RANK"] == "0":
        told = {"did": what, "time": time.time(), "workers": int(os.environ["WORLD_SIZE"])}
        print(json.dumps(told), flush=True)
say("started")
sys.path.insert(0, "/code")
import train_elastic
say("imported")
draw, drawn = train_elastic.batch_of, []
def batch_of(step):
    if len(drawn) < 2:
        drawn.append(step)
        say(("set up", "trained")[len(drawn) - 1])
    time.sleep(0.02)
    return draw(step)
train_elastic.batch_of = batch_of
train_elastic.print = lambda *words, **how: None
train_elastic.main()
"""


async def measure(
    client: Client, cluster: LocalCluster, rounds: int, folder: Path
) -> dict[str, list[float]]:
    """Seconds of each part, a value for each round.

    Args:
        client: Of an administrator.
        cluster: With a real node that has the image.
        rounds: How many.
        folder: Where the checkpoint lies.
    """
    training = _Training(client, cluster)
    found: dict[str, list[float]] = {}
    await client.create(ELASTIC_TORCH_JOBS, _job(folder), NAMESPACE)
    try:
        await training.first("trained", 2, 0.0)
        for _ in range(rounds):
            for key, value in (await _grow(training) | await _shrink(training)).items():
                found.setdefault(key, []).append(value)
    finally:
        await client.delete(ELASTIC_TORCH_JOBS, JOB, NAMESPACE)
    return found


def _job(folder: Path) -> Manifest:
    sizes = {"minReplicas": 1, "maxReplicas": 4, "targetReplicas": 2}
    gpus = {"gpuSlice": {"memoryMiB": 4096, "computePercent": 15}}
    made = PacedTraining(folder, 10_000_000).elastic(JOB, {**sizes, **gpus})
    spec = made["spec"]
    spec["workersSpec"]["pythonCommand"] = ["python3", "-uc", _PROGRAM]
    spec["workersSpec"]["env"].append({"name": "LOGLEVEL", "value": "INFO"})
    spec["elasticPolicy"] = {"scaleDownGraceSeconds": GRACE}
    return made


class _Training:
    """The job while it trains."""

    def __init__(self, client: Client, cluster: LocalCluster) -> None:
        self.client = client
        self._cluster = cluster
        node = cluster.real_node()
        assert node is not None
        self._logs = node.pod_logs

    async def workers(self) -> list[Manifest]:
        return await parts.pods(self.client, _LABEL)

    def lines(self) -> Iterator[tuple[str, float, str]]:
        """Folder of the pod's log, when, and what it said."""
        for folder in self._logs.glob(f"{NAMESPACE}_elastictorchjob-{JOB}-workers-*"):
            for path in folder.glob("worker/*.log"):
                for line in path.read_text().splitlines():
                    at, _, _, said = (*line.split(" ", 3), "", "", "")[:4]
                    yield folder.name, dt.datetime.fromisoformat(at).timestamp(), said

    def said(self, did: str, workers: int, after: float) -> list[float]:
        """When ranks 0 of so many workers came so far, by their own clock."""
        told: list[dict[str, Any]] = [
            json.loads(said) for _, _, said in self.lines() if said.startswith('{"did"')
        ]
        return sorted(
            one["time"]
            for one in told
            if (one["did"], one["workers"]) == (did, workers) and one["time"] > after
        )

    def agents(self, words: str, after: float) -> dict[str, float]:
        """When the agent of each pod said so for the last time."""
        return {pod: at for pod, at, said in self.lines() if words in said and at > after}

    async def first(self, did: str, workers: int, after: float) -> float:
        """When rank 0 of so many workers came so far for the first time."""

        async def has() -> bool:
            return bool(self.said(did, workers, after))

        await when(has)
        return self.said(did, workers, after)[0]

    def slices(self) -> int:
        """How many containers of the job the agent holds to a slice."""
        known = agent_status(self._cluster)["containers"]
        return sum(JOB in one["assignment"]["pod"]["name"] for one in known)


async def _grow(training: _Training) -> dict[str, float]:
    before = {pod["metadata"]["name"] for pod in await training.workers()}

    async def made() -> bool:
        return len(await training.workers()) == 4

    async def given() -> bool:
        return sum(map(has_gpus, await training.workers())) == 4

    async def run() -> bool:
        found = await training.workers()
        return sum(pod["status"].get("phase") == "Running" for pod in found) == 4

    begin = await parts.scale(training.client, ELASTIC_TORCH_JOBS, 4)
    at_made, at_given, at_run = await when(made), await when(given), await when(run)
    trained = await training.first("trained", 4, begin)
    started = training.said("started", 4, begin)[-1]
    imported = training.said("imported", 4, begin)[-1]
    ready = training.said("set up", 4, begin)[-1]
    came = [
        at
        for pod, at in training.agents(_MEETS, begin).items()
        if not any(name in pod for name in before)
    ]
    met = training.agents(_MET, begin).values()
    return {
        "pods_made": at_made - begin,
        "gpus_given": at_given - at_made,
        "containers_run": at_run - at_given,
        "agents_started": max(came) - at_run,
        "agents_met": max(met) - max(came),
        "scripts_started": started - max(met),
        "pytorch_imported": imported - started,
        "set_up": ready - imported,
        "first_step": trained - ready,
        "gpus_to_training": trained - at_given,
        "grown": trained - begin,
        "rounds_of_agents": float(len(training.said("started", 3, begin)) + 1),
    }


async def _shrink(training: _Training) -> dict[str, float]:
    begin = await parts.scale(training.client, ELASTIC_TORCH_JOBS, 2)

    async def given_back() -> bool:
        return len(await training.workers()) == 2 and training.slices() == 2

    # The training begins anew at the same time.
    gone = await when(given_back)
    trained = await training.first("trained", 2, begin)
    return {"shrunk": trained - begin, "released_after_grace": gone - begin - GRACE}
