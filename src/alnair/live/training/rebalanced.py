"""Workers of elastic jobs that a rebalancing moves: by a migration, so that the training knows."""

from collections.abc import Callable, Sequence

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.training_jobs import project_training_job
from alnair.kube.resources import PODS
from alnair.live.training import changing
from alnair.live.training.finding import RESOURCES, JobError
from alnair.model.training_job import TrainingJob
from alnair.scheduler.advice.rebalance import Move


class WholeJob(msgspec.Struct, frozen=True):
    """A job, and the uids of all its workers on one node."""

    job: TrainingJob
    workers: frozenset[str]


async def job_of(client: Client, move: Move, moves: Sequence[Move]) -> WholeJob | None:
    """Return the elastic job all of whose workers on a node are moved; None for other pods.

    A migration empties the node of the job: where some of its workers are to stay, each of the
    others is evicted as any pod.

    Raises:
        KubeError: The cluster cannot be read.
    """
    try:
        labels = (await client.get(PODS, move.name, move.namespace))["metadata"].get("labels") or {}
    except NotFound:
        return None
    kind = next((kind for kind in RESOURCES if kind in labels), None)
    if kind is None or labels.get("role") != "worker":
        return None
    try:
        found = await client.get(RESOURCES[kind], labels[kind], move.namespace)
    except NotFound:
        return None
    job = project_training_job(found)
    leaving = {one.uid for one in moves if one.source == move.source}
    listed = await client.list(
        PODS,
        move.namespace,
        label_selector=f"{kind}={job.name},role=worker",
        field_selector=f"spec.nodeName={move.source}",
    )
    there = frozenset(str(one["metadata"]["uid"]) for one in listed.items)
    return WholeJob(job, there) if job.elastic is not None and there <= leaving else None


async def migrate(
    client: Client,
    job: TrainingJob,
    node: str,
    now: str,
    seconds: float,
    tell: Callable[[str], None],
) -> None:
    """Have a job leave a node, and wait until it has.

    Args:
        client: An open client.
        job: Which.
        node: Which.
        now: RFC 3339.
        seconds: To wait.
        tell: Takes a sentence.

    Raises:
        JobError: It does not leave in time.
        KubeError: The API server refuses something.
    """
    asked = await changing.leave(client, job, (node,), now)

    def has_left(seen: TrainingJob) -> bool:
        said = seen.status.migration
        return said is not None and said.done and said.request == asked.leave

    try:
        await changing.until(client, asked, has_left, lambda _: None, seconds)
    except JobError as error:
        raise JobError(
            f"{job.kind} {job.namespace}/{job.name} has not left {node}: {error}; 'alnair migrate"
            f" {job.name} --cancel' lets it stay"
        ) from None
    tell(f"{job.kind} {job.namespace}/{job.name} left {node}")
