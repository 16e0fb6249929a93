"""Follows a job from its submission to its end: its log, and how far it is."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, ConnectionFailed, KubeError, NotFound
from alnair.kube.objects.annotation_documents import UNREADABLE, check_version
from alnair.kube.objects.training_jobs import project_training_job
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import PODS
from alnair.live.training.finding import RESOURCES, JobError
from alnair.live.training.logs import Wanted, Write, set_or_later, stream
from alnair.live.training.summary import progress, summary, work
from alnair.model import names
from alnair.model.api_types import Workload
from alnair.model.training_job import TrainingJob

_LOOK_AGAIN: Final = 1.0
#: Looks until it is said that the controller has not read a job.
_UNREAD: Final = 5
#: Looks between two at what the profiler tells.
_WORK: Final = 10
#: Seconds in which a log comes to its end when the job has: a kubelet may be gone by then.
_REST: Final = 5.0
#: Looks in a row that may fail until the cluster is said to be away.
_PATIENCE: Final = 300

Tell = Callable[[str], None]


class _Pod(msgspec.Struct):
    metadata: ObjectMeta


async def watch(
    client: Client,
    job: TrainingJob,
    stop: asyncio.Event,
    write: Write,
    tell: Tell,
    wanted: Wanted | None = None,
) -> TrainingJob | None:
    """Follow a job until it has ended; None if it was left before.

    Args:
        client: An open client.
        job: Which.
        stop: Set to leave it; it goes on without us.
        write: Takes the lines of its log.
        tell: Takes a sentence whenever it is further.
        wanted: Which logs; the launcher's or first worker's without it.

    Raises:
        JobError: It was deleted.
        KubeError: The cluster was away for long, or refuses.
    """
    ended = asyncio.Event()
    reading = asyncio.create_task(stream(client, job, wanted or Wanted(), write, ended))
    try:
        last = await _until_it_ends(client, job, stop, tell, reading)
        if last is None:
            return None
        ended.set()
        with contextlib.suppress(TimeoutError, KubeError):
            async with asyncio.timeout(_REST):
                await asyncio.shield(reading)
        return last
    finally:
        reading.cancel()
        await asyncio.wait([reading])  # which passes on that we are cancelled ourselves
        with contextlib.suppress(asyncio.CancelledError, KubeError):
            reading.result()


async def _until_it_ends(
    client: Client,
    job: TrainingJob,
    stop: asyncio.Event,
    tell: Tell,
    reading: "asyncio.Task[None]",
) -> TrainingJob | None:
    said, looks, failed, told_of_log = "", 0, 0, False
    while not stop.is_set():
        try:
            made: Any = await client.get(RESOURCES[job.kind], job.name, job.namespace)
            seen = project_training_job(made)
            failed = 0
        except NotFound:
            raise JobError(f"{job.kind} {job.name} was deleted before it had ended") from None
        except (ApiError, ConnectionFailed) as error:
            if isinstance(error, ApiError) and not error.is_transient:
                raise
            failed += 1
            if failed == 1:
                tell(f"the cluster does not answer, and is asked again: {error}")
            if failed > _PATIENCE:
                raise
        else:
            if seen.uid != job.uid:
                raise JobError(f"{job.kind} {job.name} was replaced by another job of its name")
            now = progress(summary(seen))
            looks += 1
            # The controller has seconds to read what was just made.
            if now != said and (seen.status.phase or looks > _UNREAD):
                tell(now)
                said = now
            if seen.finished:
                return seen
            if looks % _WORK == 0 and (far := await _work(client, job)):
                tell(far)
        if reading.done() and not told_of_log and (why := reading.exception()):
            tell(f"its log cannot be read: {why}")
            told_of_log = True
        await set_or_later(stop, _LOOK_AGAIN)
    return None


async def _work(client: Client, job: TrainingJob) -> str:
    """Return how far the training is, by the first pod whose profiler says so."""
    try:
        listed = await client.list(
            PODS.typed(_Pod), job.namespace, label_selector=f"{job.kind}={job.name}"
        )
    except KubeError:
        return ""
    for pod in sorted(listed.items, key=lambda one: one.metadata.name):
        text = (pod.metadata.annotations or {}).get(names.WORKLOAD)
        if text and (far := _read(text)):
            return far
    return ""


def _read(text: str) -> str:
    try:
        found = msgspec.json.decode(text, type=Workload)
        check_version(found.v)
    except UNREADABLE:
        return ""
    return work(found)
