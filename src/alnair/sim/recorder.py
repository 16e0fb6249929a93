"""Writes down what happens in a simulation: its history, and a digest of all decisions."""

import hashlib
import math
from collections.abc import Iterable

import msgspec

from alnair.history.history import (
    End,
    History,
    JobHistory,
    NodeHistory,
    PairRate,
    Part,
    PodHistory,
    Stay,
)
from alnair.model.action import Action, Bind, Evict, Nominate, Report, WritePlan
from alnair.model.nodes import Gpu, Node
from alnair.model.workload import GpuDemand, Pod, PodGpuAssignment
from alnair.sim.jobs import Job

_MIB = 1 << 20
_WHOLE = 1000


class Recorder:
    """The history of a simulation while it is made.

    Args:
        begin: of the simulation, seconds since the epoch.
        source: what it is a history of.

    Attributes:
        digest: equal for equal decisions at equal times, in hexadecimal.
    """

    def __init__(self, begin: float, source: str) -> None:
        self._begin = begin
        self._nodes: dict[str, NodeHistory] = {}
        self._jobs: dict[str, JobHistory] = {}
        self._pods: dict[str, PodHistory] = {}
        self._pairs: dict[tuple[str, str], list[float]] = {}
        self._decisions = 0
        self._seconds = 0.0
        self._source = source
        self._smallest = math.inf
        self._finished = 0
        self.digest = ""

    def note_decisions(self, seconds: Iterable[float]) -> None:
        """Note how long attempts at pods took."""
        for each in seconds:
            self._decisions += 1
            self._seconds += each

    def decided(self, actions: Iterable[Action], now: float) -> None:
        """Take decisions into the digest."""
        for action in actions:
            line = msgspec.json.encode((self.digest, now, _digest_fields(action)))
            self.digest = hashlib.blake2b(line, digest_size=16).hexdigest()

    @property
    def counts(self) -> tuple[int, int]:
        """Jobs that were submitted and that have finished."""
        return len(self._jobs), self._finished

    # --- nodes and jobs ---------------------------------------------------------------------------

    def node_up(self, node: Node, now: float) -> None:
        """Note that a node is there."""
        self._smallest = min([self._smallest, *(gpu.memory_mib for gpu in node.gpus)])
        found = self._nodes.setdefault(node.name, NodeHistory(node=node, up=[]))
        found.node = node
        found.up.append((now - self._begin, None))

    def node_down(self, name: str, now: float) -> None:
        """Note that a node is not there any more."""
        up = self._nodes[name].up
        up[-1] = (up[-1][0], now - self._begin)

    def submitted(self, job: Job, now: float) -> None:
        """Note that a job was submitted."""
        self._jobs[job.name] = JobHistory(
            name=job.name,
            user=job.user,
            submitted=now - self._begin,
            gpus=sum(map(self.gpus_of, job.pods)),
            gang=job.gang is not None,
            least=job.gang.min_member if job.gang is not None else 0,
            duration=job.duration if math.isfinite(job.duration) else None,
            util=job.util,
            kind=job.kind,
        )

    def finished(self, job: str, now: float) -> None:
        """Note that the last work of a job was done."""
        self._jobs[job].finished = now - self._begin
        self._finished += 1

    def gpus_of(self, pod: Pod) -> float:
        """Return the GPUs that a pod asks for, a half is 0.5."""
        demand = pod.spec.gpu
        return demand.whole + self._slice(demand) / _WHOLE if demand else 0.0

    # --- pods -------------------------------------------------------------------------------------

    def created(self, pod: Pod, job: str, now: float) -> None:
        """Note that a pod was created."""
        demand = pod.spec.gpu
        requests = dict(pod.spec.requests)
        self._jobs[job].pods.append(pod.uid)
        self._pods[pod.uid] = PodHistory(
            uid=pod.uid,
            job=job,
            submitted=now - self._begin,
            cpu_milli=requests.get("cpu", 0),
            memory_mib=requests.get("memory", 0) // _MIB,
            gpus=demand.whole + bool(demand.memory_mib) if demand else 0,
            gpu_milli=self._milli(demand) if demand else 0,
            models=demand.models if demand else (),
            priority=pod.priority,
        )

    def bound(
        self, uid: str, node: str, assignment: PodGpuAssignment, gpus: Iterable[Gpu], now: float
    ) -> None:
        """Note that a pod has a node, and which parts of these GPUs of it."""
        memory = {gpu.uuid: gpu.memory_mib for gpu in gpus}
        parts: dict[str, float] = {}
        for _, shares in assignment:
            for share in shares:
                part: float = _WHOLE
                if not share.whole:
                    part = share.compute * 10.0 or (
                        share.memory_mib * _WHOLE / memory.get(share.uuid, share.memory_mib)
                    )
                # Of an init container and a container on the same GPU the larger part counts.
                parts[share.uuid] = max(part, parts.get(share.uuid, 0.0))
        found = self._pods[uid]
        found.refused = ""
        found.stays.append(
            Stay(
                node=node,
                begin=now - self._begin,
                gpus=tuple(Part(uuid, milli) for uuid, milli in parts.items()),
            )
        )

    def refused(self, uid: str, why: str) -> None:
        """Note why a pod has no node."""
        if found := self._pods.get(uid):
            found.refused = why

    def lost(self, uid: str, work: float) -> None:
        """Note that work of a pod that is on a node has to be done again."""
        self._pods[uid].stays[-1].lost += work

    def used(self, uid: str, seconds: float) -> None:
        """Note how much GPU time a pod that has or had a node has used."""
        self._pods[uid].stays[-1].used = seconds

    def left(self, uid: str, how: End, now: float) -> None:
        """Note that a pod is gone: from its node if it had one."""
        found = self._pods[uid]
        if found.stays and found.stays[-1].end is None:
            found.stays[-1].end = now - self._begin
            found.stays[-1].how = how
        else:
            found.gone = now - self._begin

    def shared(self, pair: tuple[str, str], seconds: float, rates: tuple[float, float]) -> None:
        """Note that two jobs were the only ones on a GPU for some time, and how fast they ran."""
        if pair[0] > pair[1]:
            pair, rates = (pair[1], pair[0]), (rates[1], rates[0])
        sums = self._pairs.setdefault(pair, [0.0, 0.0, 0.0])
        sums[0] += seconds
        sums[1] += seconds * rates[0]
        sums[2] += seconds * rates[1]

    def history(self, now: float) -> History:
        """Return what has happened until now."""
        return History(
            end=now - self._begin,
            nodes=self._nodes,
            jobs=self._jobs,
            pods=self._pods,
            pairs=[
                PairRate(
                    first=first,
                    second=second,
                    seconds=seconds,
                    first_rate=one / seconds,
                    second_rate=other / seconds,
                )
                for (first, second), (seconds, one, other) in self._pairs.items()
            ],
            decisions=self._decisions,
            decision_seconds=self._seconds,
            source=self._source,
        )

    def _milli(self, demand: GpuDemand) -> int:
        """Return the thousandths that are asked of each GPU."""
        return _WHOLE if demand.whole or not demand.memory_mib else self._slice(demand)

    def _slice(self, demand: GpuDemand) -> int:
        """Return the thousandths of a slice; of memory alone, those of the smallest GPU."""
        if demand.compute:
            return demand.compute * 10
        if not demand.memory_mib:
            return 0
        return min(_WHOLE, round(demand.memory_mib * _WHOLE / self._smallest))


def _digest_fields(action: Action) -> tuple[object, ...]:
    match action:
        case Bind(pod, node, assignment):
            return "bind", pod.uid, node, assignment
        case Evict(pod, reason, message):
            return "evict", pod.uid, reason, message
        case Nominate(pod, node):
            return "nominate", pod.uid, node
        case WritePlan(gang, plan):
            return "plan", gang.namespace, gang.name, plan
        case Report(pod, kind, message):
            return "report", pod.uid, kind, message
