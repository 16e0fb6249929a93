"""A snapshot of a live scheduler as a scenario: what runs goes on, what waits is decided anew."""

import math
from collections.abc import Sequence

import msgspec

from alnair.model.nodes import Node
from alnair.model.plurals import counted
from alnair.model.workload import Gang, Pod
from alnair.sim.inputs.options import Found, InputOptions
from alnair.sim.jobs import Job
from alnair.sim.virtual_api import GRACE
from alnair.snapshots import snapshot
from alnair.snapshots.snapshot import Snapshot, SnapshotError
from alnair.traces.files import TraceFileError


def read(text: str, source: str, options: InputOptions, nodes: tuple[Node, ...]) -> Found:
    """Return a snapshot's nodes, running pods and waiting ones.

    Args:
        text: Of the file.
        source: Its name.
        options: How long pods run that do not say.
        nodes: Instead of the snapshot's; then nothing runs at the begin, and all pods wait.

    Raises:
        TraceFileError: It is no snapshot, or of another version.
    """
    try:
        return found(snapshot.decode(text.encode()), options, nodes)
    except SnapshotError as error:
        raise TraceFileError(f"{source} {error}") from error


def found(saved: Snapshot, options: InputOptions, nodes: tuple[Node, ...] = ()) -> Found:
    """Return the same of a snapshot; its waiting jobs are in the order of its queue."""
    gangs = {(gang.namespace, gang.name): gang for gang in saved.gangs}
    members: dict[tuple[str, str], list[Pod]] = {}
    finished = gated = 0
    for pod in saved.pods:
        if pod.finished:
            finished += 1
        elif pod.gated:
            gated += 1
        else:
            is_member = (pod.namespace, pod.group) in gangs
            key = (pod.namespace, f"group {pod.group}") if is_member else (pod.uid, "")
            members.setdefault(key, []).append(pod)
    result = Found(
        format="snapshot",
        jobs=[],
        nodes=nodes or saved.nodes,
        begin=saved.time,
        objects=tuple((o.kind, o.namespace, o.name, o.value) for o in saved.objects),
    )
    running = []
    for pods in members.values():
        gang = gangs.get((pods[0].namespace, pods[0].group))
        job = _job([_placed(pod, saved.time, move=bool(nodes)) for pod in pods], gang, options)
        if any(pod.node for pod in job.pods):
            running.append(job)
        else:
            result.jobs.append(job)
    result.running = tuple(running)
    for count, one, several in (
        (finished, "has finished", "have finished"),
        (gated, "waits behind scheduling gates", "wait behind scheduling gates"),
    ):
        if count:
            which = counted(
                count, f"pod {one}: it is left out", f"pods {several}: they are left out"
            )
            result.notes.append(which)
    return result


def _placed(pod: Pod, now: float, *, move: bool) -> Pod:
    """Return the pod with its time on the node relative to the begin."""
    if not pod.node or move:
        return msgspec.structs.replace(
            pod, node="", bound_at=0.0, assignment=(), nominated="", created=0.0
        )
    bound = pod.bound_at or pod.started or pod.created or now
    return msgspec.structs.replace(pod, bound_at=min(0.0, bound - now))


def _job(pods: Sequence[Pod], gang: Gang | None, options: InputOptions) -> Job:
    first = pods[0]
    fallback = math.inf if options.default_duration is None else options.default_duration
    if all(pod.deleting for pod in pods):
        duration = GRACE - min(pod.bound_at for pod in pods)
    else:
        duration = max(pod.time_limit for pod in pods) or fallback
    kept = tuple(msgspec.structs.replace(pod, deleting=False) for pod in pods)
    name = f"{first.namespace}/PodGroup/{gang.name}" if gang else f"{first.namespace}/{first.name}"
    return Job(
        name=name,
        user=first.namespace,
        submitted=0.0,
        pods=kept,
        gang=gang,
        duration=duration,
        util=first.spec.expected_util or 100.0,
    )
