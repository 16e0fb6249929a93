"""An ElasticHorovodJob that grows and shrinks: seconds of each part of it."""

from alnair.kube.client import Client
from alnair.kube.resources import CONFIGMAPS, ELASTIC_HOROVOD_JOBS, Manifest
from alnair.local.controlplane import LocalCluster
from alnair.local.own_images import horovod_image
from kit import training_jobs as jobs
from kit.live.real_pods import NAMESPACE
from kit.live.trainings import ON_REAL_NODE, Training
from lib import scaling_parts as parts
from lib.scaling_parts import GRACE, JOB, has_gpus, is_ready, when


async def measure(client: Client, cluster: LocalCluster, rounds: int) -> dict[str, list[float]]:
    """Seconds of each part, a value for each round."""
    training = Training(client, cluster, "ElasticHorovodJob", JOB)
    found: dict[str, list[float]] = {}
    await client.create(ELASTIC_HOROVOD_JOBS, _job(), NAMESPACE)
    try:
        await training.trains(2)
        for _ in range(rounds):
            for key, value in (await _grow(training) | await _shrink(training)).items():
                found.setdefault(key, []).append(value)
    finally:
        await client.delete(ELASTIC_HOROVOD_JOBS, JOB, NAMESPACE)
    return found


def _job() -> Manifest:
    made = jobs.elastic(JOB, 1, 4, targetReplicas=2)
    command = ["python3", "/examples/train.py", "--steps", "1000000", "--pause", "0.02"]
    spec = made["spec"]
    spec["elasticPolicy"] = {"scaleDownGraceSeconds": GRACE}
    spec["launcherSpec"] |= {"image": horovod_image.NAME, "pythonCommand": command, **ON_REAL_NODE}
    gpus = {"gpuSlice": {"memoryMiB": 4096, "computePercent": 15}}
    spec["workersSpec"] |= {"image": horovod_image.NAME, **gpus, **ON_REAL_NODE}
    return made


async def _grow(training: Training) -> dict[str, float]:
    label = f"{training.selector},role=worker"

    async def workers() -> list[Manifest]:
        return await parts.pods(training.client, label)

    async def made() -> bool:
        return len(await workers()) == 4

    async def given() -> bool:
        return sum(map(has_gpus, await workers())) == 4

    async def ready() -> bool:
        return sum(map(is_ready, await workers())) == 4

    begin = await parts.scale(training.client, ELASTIC_HOROVOD_JOBS, 4)
    at_made, at_given, at_ready = await when(made), await when(given), await when(ready)
    told = await when(lambda: _told(training, 4))
    trains = await _first_step(training, 4, begin)
    return {
        "pods_made": at_made - begin,
        "gpus_given": at_given - at_made,
        "containers_ready": at_ready - at_given,
        "training_told": told - at_ready,
        "training_joined": trains - told,
        "gpus_to_training": trains - at_given,
        "grown": trains - begin,
    }


async def _shrink(training: Training) -> dict[str, float]:
    begin = await parts.scale(training.client, ELASTIC_HOROVOD_JOBS, 2)
    told = await when(lambda: _told(training, 2))
    trains = await _first_step(training, 2, begin)

    async def given_back() -> bool:
        return len(await training.pods()) == 3 and len(training.slices()) == 2

    gone = await when(given_back)
    return {
        "shrink_told": told - begin,
        "shrunk": trains - begin,
        "released_after_grace": gone - begin - GRACE,
    }


async def _told(training: Training, workers: int) -> bool:
    found = await training.client.get(CONFIGMAPS, f"elastichorovodjob-{JOB}-hosts", NAMESPACE)
    return bool(found["data"]["discover_hosts.sh"].count("echo ") == workers)


async def _first_step(training: Training, workers: int, after: float) -> float:
    """When the first step with so many workers ended, by the training's own clock."""
    found: list[float] = []

    async def has_trained() -> bool:
        steps = training.steps()
        found[:] = [s["time"] for s in steps if s["workers"] == workers and s["time"] > after]
        return bool(found)

    await when(has_trained)
    return found[0]
