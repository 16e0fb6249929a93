"""With how many workers training jobs would start: as the operator's allocator finds it out."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from alnair.model.workload import Gang, Pod
from alnair.scheduler.advice.worker_room import WorkerTemplate, worker_room
from alnair.scheduler.engine.view import View
from alnair.sim.inputs.training_jobs import Bounds

Key = tuple[str, str]


class WorkersResult(msgspec.Struct, frozen=True):
    """With how many workers a submitted training job would start now.

    Attributes:
        job: `namespace/name`.
        least, most: with how many it may start.
        start: how many would; 0 if not even the least fit.
        nodes: of those, by node.
        why: why no more would; empty if all would.
    """

    job: str
    kind: str
    least: int
    most: int
    start: int
    nodes: tuple[tuple[str, int], ...] = ()
    why: str = ""


def workers_now(
    view: View,
    trainings: Mapping[Key, Bounds],
    gangs: Iterable[Gang],
    pods: Sequence[Pod],
    now: float,
) -> list[WorkersResult]:
    """Return with how many workers each job would start, one after the other.

    Args:
        view: of an engine between two steps.
        trainings: by namespace and name of their PodGroups.
        gangs: PodGroups that are submitted, theirs and others.
        pods: that are submitted.
        now: seconds since the epoch.
    """
    first: dict[Key, Pod] = {}
    for pod in pods:
        first.setdefault((pod.namespace, pod.group), pod)
    jobs = {
        "{}/{}".format(*key): WorkerTemplate(replace(gang, created=gang.created or now), first[key])
        for gang in gangs
        if (key := (gang.namespace, gang.name)) in trainings and key in first
    }
    limits = {"{}/{}".format(*key): found for key, found in trainings.items()}
    found = []
    with worker_room(view, jobs, now) as room:
        for name in jobs:
            asked = limits[name]
            could = room.startable(name, asked.most)
            start = could.workers if could.workers >= asked.least else 0
            if start:
                room.place(name, start)
            nodes = could.nodes if start else ()
            found.append(
                WorkersResult(name, asked.kind, asked.least, asked.most, start, nodes, could.why)
            )
    return found


def sized(
    results: Iterable[WorkersResult], gangs: Iterable[Gang], pods: Iterable[Pod]
) -> tuple[tuple[Gang, ...], tuple[Pod, ...]]:
    """Return what is submitted with as many workers as would start, or else with the least."""
    wanted = {r.job: r.start or r.least for r in results}
    made = []
    for gang in gangs:
        count = wanted.get(f"{gang.namespace}/{gang.name}")
        made.append(gang if count is None else replace(gang, min_member=count))
    kept: list[Pod] = []
    seen: dict[str, int] = {}
    for pod in pods:
        job = f"{pod.namespace}/{pod.group}"
        seen[job] = seen.get(job, 0) + 1
        if job not in wanted or seen[job] <= wanted[job]:
            kept.append(pod)
    return tuple(made), tuple(kept)
