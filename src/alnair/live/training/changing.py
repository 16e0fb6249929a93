"""Changes training jobs as their users want: how many workers, suspended or not, off which nodes.

Only what users write is written; what follows from it is the operator's.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.training_jobs import project_training_job
from alnair.live.training.finding import RESOURCES, JobError
from alnair.model import names
from alnair.model.training_job import TrainingJob

_LOOK_AGAIN: Final = 0.5


async def scale(
    client: Client,
    job: TrainingJob,
    wish: int | None,
    least: int | None = None,
    most: int | None = None,
) -> TrainingJob:
    """Set how many workers are wanted, and between which bounds; None leaves one as it is.

    Raises:
        JobError: Its number is fixed, it has ended, or the numbers contradict one another.
        KubeError: The API server refuses it.
    """
    going_on(job)
    if job.elastic is None:
        raise JobError(
            f"a HorovodJob has a fixed number of workers: suspend it ('alnair suspend {job.name}'),"
            " write spec.workersSpec.replicas and resume it; an ElasticHorovodJob can be scaled"
        )
    low, high = least or job.least, most or job.most
    if low > high:
        raise JobError(f"--min {low} is more than --max {high}")
    target = min(max(job.wish, low), high) if wish is None else wish
    if not low <= target <= high:
        option = f"--max {target}" if target > high else f"--min {target}"
        raise JobError(
            f"{target} workers are not within {low}..{high} of {job.name}: add {option} to change"
            " that, or 'alnair suspend' to have none"
        )
    bounds = {"minReplicas": low, "maxReplicas": high, "targetReplicas": target}
    return await _patch(client, job, {"spec": {"workersSpec": bounds}})


async def suspend(client: Client, job: TrainingJob, *, suspended: bool) -> TrainingJob:
    """Have a job give back all that it holds, or go on.

    Raises:
        JobError: It has ended.
        KubeError: The API server refuses it.
    """
    going_on(job)
    return await _patch(client, job, {"spec": {"runPolicy": {"suspend": suspended}}})


async def leave(client: Client, job: TrainingJob, nodes: tuple[str, ...], now: str) -> TrainingJob:
    """Ask for a job's workers to leave nodes; without nodes, that they may stay.

    Args:
        client: An open client.
        job: Which.
        nodes: Names.
        now: RFC 3339: tells this request from an equal one before.

    Raises:
        JobError: It has ended.
        KubeError: The API server refuses it.
    """
    going_on(job)
    said = f"{','.join(nodes)}@{now}" if nodes else None
    return await _patch(client, job, {"metadata": {"annotations": {names.LEAVE_NODES: said}}})


async def until(
    client: Client,
    job: TrainingJob,
    done: Callable[[TrainingJob], bool],
    tell: Callable[[TrainingJob], None],
    seconds: float,
) -> TrainingJob:
    """Wait until a job is as it shall be, or has ended; returns it.

    Raises:
        JobError: It is not so in time, or is gone.
        KubeError: The cluster cannot be read.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            made: Any = await client.get(RESOURCES[job.kind], job.name, job.namespace)
        except NotFound:
            raise JobError(f"{job.kind} {job.name} was deleted") from None
        seen = project_training_job(made)
        tell(seen)
        # What the operator has not read yet, its status says nothing about.
        read = seen.status.observed_generation == seen.generation
        if (read and done(seen)) or seen.finished:
            return seen
        if time.monotonic() > deadline:
            raise JobError(
                f"{job.name} is not there after {seconds:g} s, and goes on without this command:"
                f" 'alnair jobs {job.name}' shows it"
            )
        await asyncio.sleep(_LOOK_AGAIN)


def going_on(job: TrainingJob) -> None:
    """Refuse to change a job that has ended.

    Raises:
        JobError: It has.
    """
    if job.finished:
        raise JobError(
            f"{job.name} has ended ({job.finished}): submit it anew, with --replace for its name"
        )
    if job.deleting:
        raise JobError(f"{job.name} is being deleted")


async def _patch(client: Client, job: TrainingJob, patch: dict[str, Any]) -> TrainingJob:
    made = await client.merge_patch(RESOURCES[job.kind], job.name, patch, job.namespace)
    return project_training_job(made)
