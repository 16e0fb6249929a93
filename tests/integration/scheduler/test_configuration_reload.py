"""A scheduler whose configuration file changes while it works."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS, PODS
from alnair.model import names
from kit.live.scheduler_process import (
    SchedulerProcess,
    StartScheduler,
    bound,
    eventually,
    pod,
)

HEAD = "apiVersion: scheduler.alnair.io/v1alpha1\nkind: SchedulerConfiguration\n"
#: All GPUs of the cluster.
GPUS = 24
OURS = "  - {schedulerName: alnair-scheduler}\n"


def write(path: Path, text: str) -> None:
    """Replace the file at once, as the kubelet does."""
    path.with_suffix(".new").write_text(HEAD + text)
    path.with_suffix(".new").replace(path)


async def says(process: SchedulerProcess, words: str, times: int = 1) -> None:
    async def is_said() -> bool:
        return process.log.read_text().count(words) >= times

    await eventually(is_said, what=f"the log does not say {words!r}")


async def test_a_new_profile_places_pods_that_waited_for_it(
    start_scheduler: StartScheduler, admin: Client, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "scheduler.yaml"
    write(path, f"profiles:\n{OURS}")
    process = start_scheduler(f"--config={path}")
    await admin.create(PODS, pod(namespace, "waits", scheduler="team-a"))
    await admin.create(PODS, pod(namespace, "first"))
    await eventually(_is_bound(admin, namespace, {"first"}))
    # Default spreading by Services reads kinds that nobody has followed until now.
    spread = "    pluginConfig: [{name: PodTopologySpread, args: {defaultingType: System}}]\n"
    write(path, f"profiles:\n{OURS}  - schedulerName: team-a\n{spread}")
    await eventually(_is_bound(admin, namespace, {"first", "waits"}))
    await says(process, f"{path} is in force")
    assert process.process.poll() is None, "it is the same process"


async def test_a_bad_file_is_told_and_the_former_one_stays_in_force(
    start_scheduler: StartScheduler, admin: Client, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "scheduler.yaml"
    write(path, f"profiles:\n{OURS}")
    process = start_scheduler(f"--config={path}")
    await says(process, "serving health")
    write(path, "profiles: []\n")
    await says(process, "ConfigurationRefused: the former one stays in force")
    await admin.create(PODS, pod(namespace, "after"))
    await eventually(_is_bound(admin, namespace, {"after"}))

    async def is_told() -> bool:
        events = (await admin.list(EVENTS, names.NAMESPACE)).items
        told = [one for one in events if one["reason"] == "ConfigurationRefused"]
        return any("profiles: is empty" in one["message"] for one in told)

    await eventually(is_told, what="no event tells it")
    write(path, f"profiles:\n{OURS}serving: {{port: 1}}\n")
    await says(process, "restart the scheduler to change serving.port")


async def test_reloads_under_load_give_each_gpu_once_and_lose_no_pod(
    start_scheduler: StartScheduler, admin: Client, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "scheduler.yaml"
    write(path, "seed: 0\n")
    process = start_scheduler(f"--config={path}")
    await says(process, "serving health")
    wanted = {f"p{i}" for i in range(GPUS)}

    async def create() -> None:
        for name in sorted(wanted):
            await admin.create(PODS, pod(namespace, name, limits={names.GPU: 1}))
            await asyncio.sleep(0.2)

    creating = asyncio.create_task(create())
    for seed in range(1, 4):
        write(path, f"seed: {seed}\n")
        await says(process, f"{path} is in force", seed)
    await creating
    await eventually(_is_bound(admin, namespace, wanted), 60)
    held = []
    for one in (await admin.list(PODS, namespace)).items:
        assignment = json.loads(one["metadata"]["annotations"][names.GPU_ASSIGNMENT])
        held += [(one["spec"]["nodeName"], gpu["uuid"]) for gpu in assignment["containers"]["main"]]
    assert len(held) == len(set(held)) == GPUS


def _is_bound(client: Client, namespace: str, wanted: set[str]) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return set(await bound(client, namespace)) == wanted

    return check
