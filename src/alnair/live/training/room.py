"""Asks before a migration whether a job's workers would fit elsewhere."""

import time
from collections.abc import Sequence

from alnair.elastic.child_names import child_names
from alnair.kube.client import Client
from alnair.kube.errors import Forbidden
from alnair.kube.resources import NODES, PODS
from alnair.live import rebalancing
from alnair.live.training.finding import JobError
from alnair.model.near_names import near
from alnair.model.training_job import TrainingJob
from alnair.scheduler.advice.migration import MigrationPlan, migration
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile


async def nodes_of(client: Client, job: TrainingJob) -> dict[str, int]:
    """Return the nodes of a job's workers, with how many are on each.

    Raises:
        KubeError: The cluster cannot be read.
    """
    listed = await client.list(
        PODS, job.namespace, label_selector=f"{job.kind}={job.name},role=worker"
    )
    found: dict[str, int] = {}
    for pod in listed.items:
        node = pod["spec"].get("nodeName")
        over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if node and not over:
            found[node] = found.get(node, 0) + 1
    return dict(sorted(found.items()))


async def to_leave(client: Client, job: TrainingJob, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes that the workers shall leave: those wanted, or those that are cordoned.

    Raises:
        JobError: No worker is on one that is wanted, or none is cordoned.
        KubeError: The cluster cannot be read.
    """
    there = await nodes_of(client, job)
    listed = ", ".join(f"{node} ({count})" for node, count in there.items()) or "no node yet"
    if not wanted:
        seen = [await client.get(NODES, node) for node in there]
        cordoned = [n["metadata"]["name"] for n in seen if n["spec"].get("unschedulable")]
        if not cordoned:
            raise JobError(
                f"which node shall the workers of {job.name} leave? None of theirs is cordoned:"
                f" name one with --off. They are on {listed}"
            )
        return tuple(cordoned)
    for node in wanted:
        if node not in there:
            alike = near(node, there)
            hint = f"did you mean {', '.join(alike)}?" if alike else f"they are on {listed}"
            raise JobError(f"no worker of {job.name} is on node {node}: {hint}")
    return tuple(wanted)


async def fits(
    client: Client, profiles: Sequence[Profile], job: TrainingJob, nodes: Sequence[str]
) -> MigrationPlan | None:
    """Return how the scheduler would place what leaves these nodes; None if it may not be asked.

    Raises:
        TimeoutError: The cluster could not be read in a minute.
        KubeError: The cluster cannot be read.
    """
    try:
        known = await rebalancing.read(client, profiles)
    except Forbidden:
        return None
    engine = Engine(profiles)
    engine.learn(known, time.time())
    key = (job.namespace, child_names(job).group)
    anew = job.framework == "torch"
    return migration(engine.view, key, nodes, job.most, together=anew)
