"""Now and then: what each pod with GPUs does, from its figures and its log, told in an annotation.

Looking for cycles and phases is work: it is done in a thread, one pod after the other, with rests
so long that all of it takes half a hundredth of a core.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.kube.objects.annotations import rfc3339
from alnair.model import names, usage
from alnair.model.api_types import Workload
from alnair.model.job_facts import Declared
from alnair.node.own_thread import in_own_thread
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.profiler.pod_calls import PodCalls
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.processes.agent.profiler.training_logs import LoggedPod, TrainingLogs
from alnair.processes.agent.profiler.workload_annotations import WorkloadAnnotations
from alnair.profiler.gpu_iteration import Fine
from alnair.profiler.job_facts.inputs import Incoming, InputReads
from alnair.profiler.job_facts.model_facts import model_facts
from alnair.profiler.job_facts.weights import held_mib
from alnair.profiler.logs.log_reader import LogFindings
from alnair.profiler.memory_course import MemoryCourse
from alnair.profiler.neighbour_speeds import NeighbourSpeeds
from alnair.profiler.pod_findings import PodFindings, Values, pod_findings
from alnair.profiler.pods.accounts import Account
from alnair.profiler.use_ahead import UseAhead
from alnair.profiler.workload import workload
from alnair.sharing.matching.node_state import PodOnNode

#: Seconds between two looks at a pod, at least, and part of a core that they may take.
EVERY: Final = 30.0
PART: Final = 0.005
#: Seconds after which a GPU that is held and not used is worth a word.
IDLE_AFTER: Final = 600.0
_IDLE: Final = 1.0


class _Seen(msgspec.Struct, frozen=True):
    """What is looked at: its samples, those of GPUs that it has alone, and its log."""

    times: Values
    metrics: Mapping[str, Values]
    fine: Fine
    logged: LoggedPod | None


class _Found(msgspec.Struct, frozen=True):
    """What that tells, and at least how much GPU memory it holds all the time, in MiB."""

    use: PodFindings
    log: LogFindings | None
    held: float | None


class _Course(msgspec.Struct):
    """What is remembered of a pod from look to look."""

    memory: MemoryCourse = msgspec.field(default_factory=MemoryCourse)
    use: UseAhead = msgspec.field(default_factory=UseAhead)
    speeds: NeighbourSpeeds = msgspec.field(default_factory=NeighbourSpeeds)
    reads: InputReads = msgspec.field(default_factory=InputReads)


def _idles(found: Workload) -> str:
    if found.idle_since is None:
        return ""
    return f"it has not used the GPUs that it holds since {found.idle_since}"


def _fills(found: Workload) -> str:
    if found.memory_full_s is None:
        return ""
    return (
        f"its GPU memory will be full within {found.memory_full_s / 60:.0f} minutes, if it grows as"
        f" it did in {found.memory_full_coverage:.0%} of such times: it will run out of memory"
    )


#: Reasons of events → what they say; empty while there is nothing to say.
WARNINGS: Final[dict[str, Callable[[Workload], str]]] = {
    "GpuIdle": _idles,
    "GpuMemoryFilling": _fills,
}


class Workloads:
    """Looks, and tells.

    Args:
        client: An open client.
        profiler: Has the figures; it is told what was found.
        pods: Those of this node, by the uids in their groups.
        logs: Their logs.
        calls: What they call of CUDA.
        silent: Namespaces whose logs are not read; `*` stands for all.
        idle_for: Uid of a pod → seconds for which it has not used its GPUs; None: it does.
        idle_after: Seconds after which that is told.
        every: Seconds between two looks at a pod, at least.
        now: Seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        profiler: PodProfiler,
        pods: Callable[[], Mapping[str, PodOnNode]],
        logs: TrainingLogs,
        *,
        calls: PodCalls | None = None,
        silent: Collection[str] = (),
        idle_for: Callable[[str], float | None] = lambda _: None,
        idle_after: float = IDLE_AFTER,
        every: float = EVERY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._annotations = WorkloadAnnotations(client, now, profiler.node)
        self._profiler = profiler
        self._pods = pods
        self._logs = logs
        self._calls = calls if calls is not None else PodCalls()
        self._silent = frozenset(silent)
        self._idle_for = idle_for
        self._idle_after = idle_after
        self._every = every
        self._now = now
        self._recorder = EventRecorder(client, names.AGENT, instance=profiler.node)
        self._courses: dict[str, _Course] = {}
        #: Uid → when it was looked at, seconds since the epoch.
        self._looked: dict[str, float] = {}

    async def run(self) -> None:
        """Look and tell, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            while True:
                spent = await self.look()
                await asyncio.sleep(max(_IDLE, spent / PART))

    async def look(self) -> float:
        """Look at the pod whose turn it is; return the seconds of processor time that it took."""
        accounts = self._profiler.accounts.pods
        running = {one.uid for one in accounts.values()}
        for uid in [uid for uid in self._looked if uid not in running]:
            self._forget(uid)
        due = self._now() - self._every
        waiting = [
            (self._looked.get(one.uid, 0.0), group)
            for group, one in accounts.items()
            if one.gpus and self._looked.get(one.uid, 0.0) <= due
        ]
        if not waiting:
            return 0.0
        _, group = min(waiting)
        account = accounts[group]
        self._looked[account.uid] = self._now()
        self._logs.keep(accounts)
        # Copied here, for the books go on while the thread looks.
        series = self._profiler.accounts.window(group)
        seen = _Seen(*series, self._profiler.busy.of(group), self._logged(group, account))
        self._calls.keep(running)
        found, spent = await in_own_thread(self._find, seen)
        if group not in self._profiler.accounts.pods:
            return spent  # it went while it was looked at
        made = self._made(group, account, found)
        self._events(account, made)
        if made is not None:
            self._profiler.workloads[account.uid] = made
            await self._annotations.tell(
                OwningPod(account.namespace, account.name, account.uid), made
            )
        return spent

    def _logged(self, group: str, account: Account) -> LoggedPod | None:
        """The pod, if its log may be read."""
        pod = self._pods().get(group)
        if pod is None or not pod.reads_log or self._silent & {pod.namespace, "*"}:
            return None
        names_ = tuple(sorted(account.containers))
        return LoggedPod(pod.namespace, pod.name, group, names_, pod.log_pattern)

    def _find(self, seen: _Seen) -> tuple[_Found, float]:
        began = time.thread_time()
        use = pod_findings(seen.times, seen.metrics, seen.fine)
        log = self._logs.read(seen.logged) if seen.logged is not None else None
        memory = seen.metrics.get(usage.GPU_MEMORY_MIB)
        held = held_mib(seen.times, memory) if memory is not None else None
        return _Found(use, log, held), time.thread_time() - began

    def _made(self, group: str, account: Account, found: _Found) -> Workload | None:
        """Return the document, with what needs more than this look to be known."""
        course = self._courses.setdefault(account.uid, _Course())
        now = self._now()
        said = found.log or LogFindings()
        used = self._profiler.accounts.newest(group, usage.GPU_MEMORY_MIB, round(self._every))
        if used:
            course.memory.add(now, max(used))
        if found.use.busy is not None:
            course.use.add(now, 100 * found.use.busy)
        since, neighbours = self._profiler.neighbours.of(group)
        if said.at is not None and said.done is not None:
            course.speeds.add(said.at, said.done, neighbours, since)
        course.reads.take(_incoming(account, said.epoch))
        idle = self._idle_for(account.uid)
        pod = self._pods().get(group)
        declared = pod.declared if pod is not None else Declared()
        cuda, kind = self._calls.look(account)
        return workload(
            rfc3339(now),
            found.use,
            log=found.log,
            idle_since=None if idle is None or idle < self._idle_after else rfc3339(now - idle),
            filling=course.memory.filling(sum(gpu.memory_mib for gpu in account.gpus.values())),
            ahead=course.use.told(),
            neighbours=neighbours,
            slowdown=course.speeds.slowdown(),
            type_by_calls=kind,
            model=model_facts(declared.model, said.model, found.held),
            input=course.reads.facts(declared.places),
            cuda=cuda,
        )

    def _events(self, account: Account, made: Workload | None) -> None:
        """Tell what is worth a look, once each time that it begins."""
        before = self._profiler.workloads.get(account.uid)
        pod = ObjectReference("Pod", account.name, account.namespace, account.uid)
        for reason, words in WARNINGS.items():
            said = words(made) if made is not None else ""
            if said and not (before is not None and words(before)):
                self._recorder.record(pod, reason, said, "Warning")

    def _forget(self, uid: str) -> None:
        del self._looked[uid]
        self._courses.pop(uid, None)
        self._annotations.forget(uid)
        self._profiler.workloads.pop(uid, None)


def _incoming(account: Account, epoch: float | None) -> Incoming:
    disks = [one.io_read for one in account.samples.values() if one.io_read is not None]
    network = account.network.rx if account.network is not None else None
    return Incoming(sum(disks) if disks else None, network, epoch)
