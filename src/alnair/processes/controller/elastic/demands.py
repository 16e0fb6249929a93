"""What training jobs ask of a plan, kept ready: only jobs that changed are looked at again."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.elastic import horovod, torch
from alnair.elastic.child_names import child_names
from alnair.elastic.job_status import is_created, seconds, waits_since
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import PodWire
from alnair.model import names
from alnair.model.elastic_plan import ElasticDemand
from alnair.model.training_job import SUSPENDED, TrainingJob
from alnair.model.workload import Gang, Pod
from alnair.processes.controller.elastic.cache import JobCache
from alnair.processes.controller.elastic.children import JobKey
from alnair.scheduler.advice.worker_room import WorkerTemplate
from alnair.scheduler.engine.view import View

#: GPUs that count for a slice whose compute share nobody says.
_SMALL_SLICE: Final = 0.1


class Asking(msgspec.Struct, frozen=True):
    """A job that takes part: what it asks for but for what the books say, and a further worker."""

    uid: str
    generation: int
    demand: ElasticDemand
    template: WorkerTemplate

    def seen_in(self, view: View) -> tuple[ElasticDemand, WorkerTemplate]:
        """Return the job as an engine sees it.

        A job that is not there yet has the priority of its class; then admission has told it.
        """
        known = [view.pods[uid] for uid in self.template.pods or () if uid in view.pods]
        placed = sum(record.row >= 0 for record in known)
        template, demand = self.template, self.demand
        if known and known[0].pod.priority != demand.priority:
            demand = replace(demand, priority=known[0].pod.priority)
            template = replace(template, pod=replace(template.pod, priority=demand.priority))
        state = view.find_gang((template.gang.namespace, template.gang.name))
        if state is not None and state.gang is not None:
            template = replace(template, gang=state.gang)
        return (replace(demand, placed=placed) if placed else demand), template


class Unplaced(msgspec.Struct, frozen=True):
    """A job that has no pods yet, as there is no room for the least of its workers.

    Attributes:
        job: Which.
        gang: What its PodGroup would be.
        pod: What a worker would be.
        since: When it began to wait, seconds since the epoch.
    """

    job: TrainingJob
    gang: Gang
    pod: Pod
    since: float


class _Memory:
    """What is remembered of a job from plan to plan."""

    __slots__ = ("eager", "resized", "size", "wish")

    def __init__(self, wish: int) -> None:
        #: Workers that it was last given; None: no plan has asked about it.
        self.size: int | None = None
        self.resized = 0.0
        #: What its user last wanted, and whether that has just risen.
        self.wish = wish
        self.eager = False


class Demands:
    """What all elastic jobs ask for.

    Args:
        cache: Of the jobs.
        priority: Says the priority of a class by its name; an empty name is the default.
    """

    def __init__(self, cache: JobCache, priority: Callable[[str], int]) -> None:
        self._cache = cache
        self._priority = priority
        self._projector = PodProjector()
        self._asking: dict[JobKey, Asking] = {}
        self._memory: dict[JobKey, _Memory] = {}
        self._changed: dict[JobKey, None] = {}
        self._unreadable: set[JobKey] = set()
        self._left_out: list[JobKey] = []

    def mark(self, key: JobKey) -> bool:
        """Note that a job changed; returns whether somebody waits for the next plan for it."""
        self._changed[key] = None
        job, known = self._cache.jobs.get(key), self._asking.get(key)
        if job is None or (known is not None and known.uid != job.uid):
            # Until the next plan, another job of its name would have what was given to it.
            self._leave_out(key)
            self._unreadable.discard(key)
        if job is None or not takes_part(job) or self._is_refused(key, job):
            return False
        return known is None or (known.uid, known.generation) != (job.uid, job.generation)

    def mark_all(self) -> None:
        """Note that all jobs may have changed."""
        self._changed.update(dict.fromkeys(self._cache.jobs))

    def now(self) -> list[tuple[JobKey, Asking]]:
        """Return what all jobs ask for."""
        for key in self._changed:
            job = self._cache.jobs.get(key)
            was_unreadable = key in self._unreadable
            self._unreadable.discard(key)
            if job is None or not takes_part(job) or self._is_refused(key, job):
                self._leave_out(key)
                continue
            try:
                self._asking[key] = self._look(key, job)
            except msgspec.ValidationError:
                # No API server takes such a pod. Its words are the user's, who must not hold up
                # the plan for everybody else.
                self._leave_out(key)
                self._unreadable.add(key)
                if not was_unreadable:
                    self._left_out.append(key)
        self._changed.clear()
        return list(self._asking.items())

    def left_out(self) -> list[JobKey]:
        """Return, once, the jobs that have just been found to have no place in plans."""
        found, self._left_out = self._left_out, []
        return found

    def unreadable(self, key: JobKey) -> bool:
        """Whether a job has no place in plans, as its workers' pod is none."""
        return key in self._unreadable

    def size(self, key: JobKey) -> int | None:
        """Return how many workers a job was last given; None if no plan has asked about it."""
        memory = self._memory.get(key)
        return None if memory is None else memory.size

    def unplaced(self) -> list[Unplaced]:
        """Return the jobs that have no pods, as they wait for room."""
        found = []
        for key, asking in self._asking.items():
            job, size = self._cache.jobs.get(key), self.size(key)
            since = None if job is None else waits_since(job)
            if job is not None and since is not None and not size and job.uid == asking.uid:
                gang = replace(asking.template.gang, min_member=job.least, created=since)
                found.append(Unplaced(job, gang, asking.template.pod, since))
        return found

    def resize(self, key: JobKey, size: int, resized: float | None) -> bool:
        """Note what a job was given, and when if that is another size; returns if it is news."""
        memory = self._memory.get(key)
        if memory is None:
            return False
        if resized is not None:
            memory.resized, memory.eager = resized, False
            self._changed[key] = None
        is_news, memory.size = memory.size != size, size
        return is_news

    def _leave_out(self, key: JobKey) -> None:
        self._asking.pop(key, None)
        self._memory.pop(key, None)

    def _is_refused(self, key: JobKey, job: TrainingJob) -> bool:
        """Whether the API server does not take a job's objects, so that it needs no room yet."""
        return not is_created(job) and not self._cache.has_workers(key)

    def _look(self, key: JobKey, job: TrainingJob) -> Asking:
        before = self._asking.get(key)
        same = before is not None and (before.uid, before.generation) == (job.uid, job.generation)
        if before is not None and before.uid != job.uid:
            del self._memory[key]
        memory = self._memory.setdefault(key, _Memory(job.wish))
        memory.eager |= job.wish > memory.wish
        memory.wish = job.wish
        observed = self._cache.observed(key, None, has_keys=True)
        priority = self._priority(job.priority_class)
        size = memory.size
        if size is None:
            size = 0 if _is_suspended(job) else job.status.target_replicas or 0
        demand = ElasticDemand(
            key="/".join(key),
            created=job.created,
            priority=priority,
            least=job.least,
            wish=job.wish,
            size=size,
            gpus=_gpus(job),
            started=job.status.start_time is not None,
            unschedulable=observed.group is not None and bool(observed.group.refusal),
            resized=memory.resized or seconds(job.status.resize_time or ""),
            eager=memory.eager,
            grows=job.elastic is not None and job.elastic.grow,
        )
        pod = before.template.pod if before is not None and same else self._pod(job)
        if pod.priority != priority:
            pod = replace(pod, priority=priority)
        gang = Gang(job.namespace, child_names(job).group, 1, job.created)
        pods = tuple(one.uid for one in self._cache.pods(key, "worker"))
        return Asking(job.uid, job.generation, demand, WorkerTemplate(gang, pod, pods))

    def _pod(self, job: TrainingJob) -> Pod:
        """Return the pod of a further worker, as the scheduler would read it."""
        children = child_names(job)
        if job.framework == "torch":
            made = torch.workers(job, children, 1)["spec"]["template"]
        else:
            made = horovod.worker_template(job, children)
        meta = {
            **made["metadata"],
            "name": children.worker(job.most),
            "namespace": job.namespace,
            "uid": f"{job.uid}-worker",
        }
        pod = msgspec.convert({**made, "metadata": meta}, PodWire, strict=False)
        return replace(self._projector(pod), group="")


def takes_part(job: TrainingJob) -> bool:
    """Whether a job's size is planned; another scheduler finds its own place for what is wanted."""
    ours = job.elastic is not None and job.scheduler in names.SCHEDULERS
    return ours and not (job.deleting or job.finished or job.run.suspend)


def _is_suspended(job: TrainingJob) -> bool:
    found: Iterable[bool] = (
        one.status == "True" for one in job.status.conditions or () if one.type == SUSPENDED
    )
    return any(found)


def _gpus(job: TrainingJob) -> float:
    part = job.workers.gpu_slice
    if part is None:
        return float(job.gpus)
    return (part.compute_percent or 0) / 100 or _SMALL_SLICE
