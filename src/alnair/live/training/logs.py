"""The logs of a training job: of its launcher or workers, now or as they are written."""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import ApiError
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.pod_logs.follow import follow
from alnair.kube.resources import PODS
from alnair.live.training.finding import JobError
from alnair.model.training_job import TrainingJob

_LOOK_AGAIN: Final = 1.0
_ENDED: Final = ("Succeeded", "Failed")
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
#: How horovodrun begins each line of a process.
_OF_RANK: Final = re.compile(rb"(?:\w{3} \w{3} +\d+ [\d:]+ \d{4})?\[(\d+)\]<std(?:out|err)>:")

#: Takes a line, and the name of its pod's place: `launcher`, `worker-3`.
Write = Callable[[str, bytes], None]


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    status: _Status = msgspec.field(default_factory=_Status)


class LogPod(msgspec.Struct, frozen=True):
    """A pod with a log: its name and uid, its container, and its place in the job."""

    name: str
    uid: str
    container: str
    place: str
    started: bool


class Wanted(msgspec.Struct, frozen=True):
    """Which logs.

    Attributes:
        rank: Of Horovod, the process of this number; of torchrun, the worker. None: the launcher
            with all processes, or the first worker.
        everything: Of all pods.
    """

    rank: int | None = None
    everything: bool = False


async def pods(client: Client, job: TrainingJob, wanted: Wanted) -> list[LogPod]:
    """Return the pods whose logs are wanted, of each place the newest, in order.

    Raises:
        KubeError: The cluster cannot be read.
    """
    listed = await client.list(
        PODS.typed(_Pod), job.namespace, label_selector=f"{job.kind}={job.name}"
    )
    return _of_places(job, wanted, listed.items)


def _of_places(job: TrainingJob, wanted: Wanted, there: Sequence[_Pod]) -> list[LogPod]:
    newest: dict[tuple[str, int], _Pod] = {}
    for pod in sorted(there, key=_age):
        labels = pod.metadata.labels or {}
        role = labels.get("role", "")
        number = labels.get(_INDEX) or pod.metadata.name.rpartition("-")[2]
        index = int(number) if role == "worker" and number.isdecimal() else 0
        if role in ("worker", "launcher"):
            newest[role, index] = pod
    return [
        _log_pod(role, index, newest[role, index])
        for role, index in sorted(newest)
        if _is_wanted(job, wanted, role, index)
    ]


def _age(pod: _Pod) -> tuple[str, bool, bool]:
    """Sort pods by age: of two of one second, and they are no finer, one that stays is newer."""
    stays = pod.metadata.deletion_timestamp is None
    return pod.metadata.creation_timestamp, stays, pod.status.phase not in _ENDED


async def read(client: Client, pod: LogPod, namespace: str, tail: int | None) -> list[bytes]:
    """Return the lines that a pod has written until now.

    Args:
        client: An open client.
        pod: Which.
        namespace: Of the pod.
        tail: The last so many; None for all.

    Raises:
        KubeError: They cannot be read.
    """
    query = {"container": pod.container}
    if tail is not None:
        query["tailLines"] = str(tail)
    path = PODS.item(pod.name, namespace, "log")
    return (await client.raw("GET", path, query=query)).splitlines()


async def stream(
    client: Client, job: TrainingJob, wanted: Wanted, write: Write, ended: asyncio.Event
) -> None:
    """Write the logs as they come, of pods that come later, too, until the job has ended.

    Args:
        client: An open client.
        job: Which.
        wanted: Which logs.
        write: Takes each line.
        ended: Set when no pod comes any more; logs are still read to their end.

    Raises:
        ApiError: The API server refuses for good.
    """
    following: dict[str, asyncio.Task[None]] = {}
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                over = ended.is_set()
                for pod in await _seen(client, job, wanted):
                    if pod.started and pod.uid not in following:
                        work = _follow(client, job.namespace, pod, wanted, write)
                        following[pod.uid] = group.create_task(work)
                if over:
                    return
                await set_or_later(ended, _LOOK_AGAIN)
    except* ApiError as errors:
        raise errors.exceptions[0] from None


def of_rank(line: bytes, rank: int) -> bytes | None:
    """Return what a process of Horovod wrote, without its number; None if another one did.

    Lines of the launcher itself are nobody's.
    """
    found = _OF_RANK.match(line)
    if found is None or int(found[1]) != rank:
        return None
    return line[found.end() :]


async def _follow(
    client: Client, namespace: str, pod: LogPod, wanted: Wanted, write: Write
) -> None:
    lines = follow(client, namespace, pod.name, pod.container, uid=pod.uid)
    async with aclosing(lines):
        async for some in lines:
            for line in chosen([one.text for one in some], pod, wanted):
                write(pod.place, line)


def chosen(lines: Sequence[bytes], pod: LogPod, wanted: Wanted) -> list[bytes]:
    """Return the lines that are wanted of a pod."""
    if pod.place != "launcher" or wanted.rank is None or wanted.everything:
        return [*lines]
    found = (of_rank(line, wanted.rank) for line in lines)
    return [line for line in found if line is not None]


async def _seen(client: Client, job: TrainingJob, wanted: Wanted) -> list[LogPod]:
    try:
        return await pods(client, job, wanted)
    except ApiError as error:
        if not error.is_transient:
            raise
        return []


async def set_or_later(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, or so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _is_wanted(job: TrainingJob, wanted: Wanted, role: str, index: int) -> bool:
    if wanted.everything:
        return True
    if job.framework == "horovod":
        return role == "launcher"
    return role == "worker" and index == (wanted.rank or 0)


def _log_pod(role: str, index: int, pod: _Pod) -> LogPod:
    place = role if role == "launcher" else f"worker-{index}"
    started = pod.status.phase in ("Running", "Succeeded", "Failed")
    return LogPod(pod.metadata.name, pod.metadata.uid, role, place, started)


def nothing(job: TrainingJob, wanted: Wanted) -> JobError:
    """Return what to say where no pod has the log that is wanted."""
    if wanted.rank is not None and job.framework == "torch":
        return JobError(
            f"{job.name} has no worker {wanted.rank} now: 'alnair jobs {job.name}' shows which"
        )
    state = job.status.phase or "Pending"
    return JobError(
        f"{job.name} has no pod with a log now ({state}): 'alnair jobs {job.name}' says why,"
        " -f waits for one"
    )
