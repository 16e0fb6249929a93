"""From what is known of a cluster to its history.

What a cluster does not tell is taken so (docs/reference/metrics-of-scheduling.md, "A live
cluster"): a job is what one PodGroup or controller owns, and its user is the namespace; a job's
time alone is the time that it ran; of a stay that was cut short all work is lost.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from alnair.history.history import End, History, JobHistory, NodeHistory, Part, PodHistory, Stay
from alnair.history.metrics.losses import CUT_SHORT
from alnair.live.recording.gpu_guesses import Guess
from alnair.live.recording.record_lines import PodRecord
from alnair.live.recording.recorded_cluster import Known, KnownNode, KnownPod
from alnair.model import names
from alnair.model.nodes import Gpu, Node

_WHOLE: Final = 1000.0
#: A node that goes takes its pods with it; they are seen to go a little earlier or later.
_AROUND: Final = 60.0
#: Kubernetes tells when pods were created to the second.
_TICK: Final = 1.0


def build(
    known: Known,
    *,
    begin: float | None = None,
    namespaces: frozenset[str] = frozenset(),
    source: str = "",
) -> History:
    """Return the history of a cluster.

    Args:
        known: All that is known of it.
        begin: from when, seconds since the epoch; None = from the begin of the record, or from the
            creation of the oldest pod of the namespaces.
        namespaces: only jobs of these, the pods of others only take room; empty = all.
        source: what it is a history of.
    """
    if begin is None:
        begin = known.first
        if known.head is None:
            records = [pod.record for pod in known.pods.values()]
            begin = min(
                (r.created for r in records if not namespaces or r.namespace in namespaces),
                default=known.last,
            )
    end = known.last - begin
    nodes = {name: _node(node, begin) for name, node in sorted(known.nodes.items())}
    # Pods outlive their nodes for a while; of a node that nobody saw, only the name is known.
    for name in sorted({pod.record.node for pod in known.pods.values()} - nodes.keys() - {""}):
        nodes[name] = NodeHistory(node=Node(name, {}), up=[])
    found = History(end=end, nodes=nodes, jobs={}, pods={}, source=source)
    least_memory = min(
        (gpu.memory_mib for item in nodes.values() for gpu in item.node.gpus if gpu.memory_mib),
        default=0,
    )
    guess = Guess(nodes)
    members: dict[str, list[KnownPod]] = {}
    in_order = sorted(
        known.pods.values(), key=lambda pod: (pod.bound or pod.record.created, pod.record.uid)
    )
    for pod in in_order:
        if _until(pod, known.last) < begin or pod.record.created > known.last:
            continue
        record = pod.record
        is_own = not namespaces or record.namespace in namespaces
        if not is_own and pod.bound is None:
            continue
        job = f"{record.namespace}/{record.job}" if is_own else ""
        found.pods[record.uid] = _pod(pod, job, begin, known, guess, least_memory)
        if is_own:
            members.setdefault(job, []).append(pod)
    for job, pods in members.items():
        found.jobs[job] = _job(job, pods, found, known)
    found.decisions, found.decision_seconds = _decisions(known, begin)
    return found


def _decisions(known: Known, begin: float) -> tuple[int, float]:
    """Return the decisions between two looks at the scheduler, from a begin on."""
    within = [(count, seconds) for time, count, seconds in known.decided if time >= begin]
    if not within:
        return 0, 0.0
    return within[-1][0] - within[0][0], within[-1][1] - within[0][1]


def _node(node: KnownNode, begin: float) -> NodeHistory:
    record = node.record
    gpus = record.gpus or tuple(
        Gpu(f"{record.name}/{index}", index, record.model, 0) for index in range(record.gpu_count)
    )
    return NodeHistory(
        node=Node(
            record.name,
            {"cpu": record.cpu_milli, "memory": record.memory, names.GPU: len(gpus)},
            labels={names.GPU_MODEL_LABEL: record.model} if record.model else {},
            gpus=gpus,
        ),
        up=[(up - begin, None if down is None else down - begin) for up, down in node.up],
    )


def _until(pod: KnownPod, now: float) -> float:
    """Return when it held nothing and waited for nothing any more."""
    ends = [time for time in (pod.ended, pod.gone) if time is not None]
    return min(ends, default=now)


def _pod(
    pod: KnownPod, job: str, begin: float, known: Known, guess: Guess, least_memory: int
) -> PodHistory:
    record = pod.record
    stays = []
    over = pod.ended is not None or pod.gone is not None
    if pod.bound is not None:
        end = max(_until(pod, known.last), pod.bound) - begin
        how = _how(pod, known) if over else ""
        stay = Stay(record.node, pod.bound - begin, (), end if over else None, how)
        stay.gpus = _parts(record, stay, guess, end)
        stay.lost = end - stay.begin if how in CUT_SHORT else 0.0
        stay.used = _used(pod, stay, begin, end)
        stays.append(stay)
    count, milli = _asked(record, least_memory)
    return PodHistory(
        uid=record.uid,
        job=job,
        submitted=record.created - begin,
        cpu_milli=record.cpu_milli,
        memory_mib=record.memory_mib,
        gpus=count,
        gpu_milli=milli,
        models=record.models,
        priority=record.priority,
        stays=stays,
        refused=record.refused if not stays else "",
        gone=_until(pod, known.last) - begin if over and not stays else None,
    )


def _how(pod: KnownPod, known: Known) -> End:
    record = pod.record
    if record.phase == "completed":
        return "completed"
    if record.cut:
        return record.cut
    if record.phase == "failed":
        return "failed"
    node = known.nodes.get(record.node)
    down = node.up[-1][1] if node else pod.gone
    if down is not None and pod.gone is not None and abs(down - pod.gone) < _AROUND:
        return "lost"
    return "deleted"


def _asked(record: PodRecord, least_memory: int) -> tuple[int, int]:
    """Return how many GPUs a pod asks for, and thousandths of each.

    Memory counts as a part of the smallest GPU; with whole GPUs, a slice counts as one of them.
    """
    if record.whole:
        return record.whole + bool(record.slice_memory), int(_WHOLE)
    if not record.slice_memory:
        return 0, 0
    memory = _WHOLE * record.slice_memory / least_memory if least_memory else 0.0
    return 1, min(round(max(memory, 10.0 * record.slice_compute)), int(_WHOLE))


def _parts(record: PodRecord, stay: Stay, guess: Guess, end: float) -> tuple[Part, ...]:
    memory = guess.memory.get(stay.node, {})
    parts = tuple(
        Part(share.uuid, _milli(share.memory_mib, share.compute, memory[share.uuid]))
        for share in record.shares
        if share.uuid in memory
    )
    if not parts and (record.whole or record.slice_memory):
        parts = guess.parts(stay.node, record.whole, 10.0 * record.slice_compute, stay.begin)
    guess.hold(parts, stay.begin, end)
    return parts


def _milli(memory_mib: int, compute: int, of_memory: int) -> float:
    memory = _WHOLE * memory_mib / of_memory if of_memory else 0.0
    return min(max(memory, 10.0 * compute), _WHOLE)


def _used(pod: KnownPod, stay: Stay, begin: float, end: float) -> float | None:
    """Return the GPU seconds in use.

    Each measurement holds until the next one, the first from the begin.
    """
    if not pod.utils or not stay.gpus:
        return None
    gpus = sum(part.milli for part in stay.gpus) / _WHOLE
    times = [stay.begin, *(max(time - begin, stay.begin) for time, _ in pod.utils[1:]), end]
    used = 0.0
    for (_, percent), (since, until) in zip(pod.utils, pairwise(times), strict=True):
        used += percent / 100.0 * max(min(until, end) - since, 0.0)
    return used * gpus


def _job(name: str, pods: list[KnownPod], found: History, known: Known) -> JobHistory:
    records = [pod.record for pod in pods]
    of = [found.pods[record.uid] for record in records]
    first = records[0]
    together = _most_at_once(pods, known.last, [1.0] * len(pods))
    gpus = [pod.gpus * pod.gpu_milli / _WHOLE for pod in of]
    finished = _finished(of, round(together))
    gang = bool(first.group)
    least = known.groups.get((first.namespace, first.group), round(together)) if gang else 0
    return JobHistory(
        name=name,
        user=first.namespace,
        submitted=min(pod.submitted for pod in of),
        gpus=_most_at_once(pods, known.last, gpus),
        gang=gang,
        least=least,
        duration=_duration(records, of, finished),
        finished=finished,
        pods=[pod.uid for pod in of],
    )


def _most_at_once(pods: list[KnownPod], now: float, amounts: Iterable[float]) -> float:
    """Return the most of the amounts of pods that were there at the same time."""
    changes = []
    for pod, amount in zip(pods, amounts, strict=True):
        begin = pod.record.created
        # At one moment, who goes goes first: he may be replaced by who comes.
        changes += [(begin, 1, amount), (max(_until(pod, now), begin + _TICK), 0, -amount)]
    most = total = 0.0
    for _, _, amount in sorted(changes):
        total += amount
        most = max(most, total)
    return most


def _finished(pods: list[PodHistory], together: int) -> float | None:
    """Return when a job's last work was done: nothing is there, and as many as it had completed."""
    lasts = [pod.stays[-1] if pod.stays else None for pod in pods]
    if any(
        stay.end is None if stay else pod.gone is None
        for stay, pod in zip(lasts, pods, strict=True)
    ):
        return None
    done = [stay.end for stay in lasts if stay and stay.end is not None and stay.how == "completed"]
    return max(done) if done and len(done) >= together else None


def _duration(
    records: list[PodRecord], pods: list[PodHistory], finished: float | None
) -> float | None:
    """Return the seconds that a job ran, or is expected to."""
    if finished is None:
        return max((record.expected for record in records), default=0.0) or None
    stays = [stay for pod in pods for stay in pod.stays]
    if any(stay.how in CUT_SHORT for stay in stays):
        return max(
            stay.end - stay.begin
            for stay in stays
            if stay.end is not None and stay.how == "completed"
        )
    return finished - min(stay.begin for stay in stays)
