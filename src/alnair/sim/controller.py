"""What users' controllers do: create the pods of jobs, again where they are lost, and end them."""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.history.history import End
from alnair.model.elastic_plan import ElasticDemand
from alnair.model.workload import Gang, Pod
from alnair.scheduler.advice.worker_room import WorkerTemplate
from alnair.sim.duration_estimates import Estimates
from alnair.sim.event_queue import Ends, EventQueue
from alnair.sim.jobs import Job
from alnair.sim.recorder import Recorder
from alnair.sim.shared_gpus import Tenancy
from alnair.sim.task_progress import Member, Task
from alnair.sim.virtual_api import VirtualApi

#: Percent.
_ROUGHLY: Final = 5.0


class _JobState:
    """A job that has been submitted and has not finished."""

    __slots__ = ("created", "job", "resized", "size", "started", "submitted", "tasks")

    def __init__(self, job: Job, tasks: list[Task], now: float) -> None:
        self.job = job
        self.tasks = tasks
        #: Pods that were created beyond those that it was submitted with.
        self.created = 0
        #: Pods that an elastic job shall have, since when, and whether all once had a node.
        self.size = len(job.pods)
        self.submitted = self.resized = now
        self.started = False


class Controller:
    """Jobs and their pods.

    Args:
        api: where pods live.
        agenda: is told when work will be done.
        recorder: is told what happens.
        tenancy: who uses which GPU.
        estimates: what is expected of durations.
        checkpoint: seconds of work between checkpoints of jobs; 0 = there are none.
        profile: scheduler name of all pods; empty = as their jobs say.
        planned: a plan says how many pods elastic jobs have, from the begin.
        expects: pods tell the scheduler which part of a GPU's time they use.

    Attributes:
        executed: seconds of work done in finished tasks, and `lost` that was done in vain, in all.
    """

    def __init__(
        self,
        api: VirtualApi,
        agenda: EventQueue,
        recorder: Recorder,
        tenancy: Tenancy,
        estimates: Estimates,
        *,
        checkpoint: float,
        profile: str,
        planned: bool,
        expects: bool,
    ) -> None:
        self._api = api
        self._agenda = agenda
        self._recorder = recorder
        self._tenancy = tenancy
        self._estimates = estimates
        self._checkpoint = checkpoint
        self._profile = profile
        self._planned = planned
        self._expects = expects
        self._jobs: dict[str, _JobState] = {}
        self._members: dict[str, Member] = {}
        self._templates: dict[str, Pod] = {}
        #: Tasks whose speed is to be found anew.
        self._touched: dict[Task, None] = {}
        #: Nodes whose GPUs are used otherwise than before.
        self.used: dict[str, None] = {}
        self.executed = 0.0
        self.lost = 0.0

    @property
    def waiting(self) -> int:
        """Number of pods that have no node."""
        return sum(not member.node for member in self._members.values())

    # --- jobs -------------------------------------------------------------------------------------

    def submit(self, job: Job, now: float) -> None:
        """Create what a job consists of."""
        self._recorder.submitted(job, now)
        self._begin(job, now)
        if job.gang is not None:
            gang = msgspec.structs.replace(job.gang, created=now)
            if self._planned and job.elastic is not None:
                gang = msgspec.structs.replace(gang, min_member=job.elastic.least)
            self._api.declare(gang)
        if self._planned and job.elastic is not None:
            self._jobs[job.name].size = 0
            return
        for index, pod in enumerate(job.pods):
            self._create(_named(pod), self._task(job, index), now)

    def adopt(self, job: Job, now: float) -> None:
        """Take over a job whose pods run already."""
        self._recorder.submitted(job, now)
        self._begin(job, now)
        if job.gang is not None:
            self._api.declare(job.gang)
        for index, pod in enumerate(map(_named, job.pods)):
            task = self._task(job, index)
            if not pod.node:
                self._create(pod, task, now)
                continue
            here = msgspec.structs.replace(pod, bound_at=now + pod.bound_at)
            self._add(pod, here, task, now)
            task.done = min(job.duration, max(task.done, now - here.bound_at))
            self.bound(here, now)

    def finish(self, task: Task, now: float) -> None:
        """Note that the work of a task is done."""
        task.finish(now)
        self.executed += task.executed
        for uid in list(task.members):
            self._remove(uid, "completed", now)
        self._touched.pop(task, None)
        state = self._jobs[task.job.name]
        state.tasks.remove(task)
        if state.tasks:
            return
        del self._jobs[task.job.name]
        if task.job.gang is not None:
            self._api.undeclare(task.job.gang.name, task.job.gang.namespace)
        self._recorder.finished(task.job.name, now)
        self._estimates.learn(task.job)

    # --- pods -------------------------------------------------------------------------------------

    def bound(self, pod: Pod, now: float) -> None:
        """Note that a pod is on a node."""
        member = self._members[pod.uid]
        node = self._api.nodes.get(pod.node)
        member.task.integrate(now)
        member.node, member.works = pod.node, True
        self._touched[member.task] = None
        if node is not None:
            self._touch(self._tenancy.join(member, pod, node, now))
            self.used[pod.node] = None
        gpus = node.gpus if node is not None else ()
        self._recorder.bound(pod.uid, pod.node, pod.assignment, gpus, now)

    def evicted(self, uid: str, now: float) -> None:
        """Note that a pod was told to end: from now on it works no more."""
        self._stop(self._members[uid], now)

    def gone(self, uid: str, how: End, now: float) -> None:
        """Delete a pod that was evicted or lost its node, and create another one in its place."""
        member = self._members.get(uid)
        if member is None:
            return  # its job has finished meanwhile
        template, task = self._templates[uid], member.task
        if member.works:
            self._stop(member, now)
        self._remove(uid, how, now)
        state = self._jobs[task.job.name]
        if task.job.elastic is None or len(task.members) < state.size:
            self._create_further(template, task, now)

    def on_node(self, name: str) -> list[str]:
        """Return the uids of the pods on a node."""
        return [uid for uid, member in self._members.items() if member.node == name]

    def settle(self, now: float) -> None:
        """Find the speeds of the tasks that something changed for, and foresee their ends."""
        for task in self._touched:
            task.follow(now)
            end = task.end(now)
            if task.foreseen != task.version and math.isfinite(end):
                task.foreseen = task.version
                self._agenda.note(end, Ends(task, task.version))
        self._touched.clear()

    def end(self, now: float) -> None:
        """Do the work of all tasks until now."""
        for state in self._jobs.values():
            for task in state.tasks:
                task.integrate(now)
                for member in task.members.values():
                    self._note_use(member)

    # --- elastic jobs -----------------------------------------------------------------------------

    def elastic(self) -> list[tuple[ElasticDemand, WorkerTemplate]]:
        """Return the elastic jobs that are there, in the order in which they were submitted."""
        found = []
        for state in self._jobs.values():
            job = state.job
            if job.elastic is None:
                continue
            members = state.tasks[0].members
            there = tuple(uid for uid, member in members.items() if member.node)
            state.started = state.started or len(there) >= state.size > 0
            template = _named(job.pods[0])
            demand = ElasticDemand(
                key=job.name,
                created=state.submitted,
                priority=template.priority,
                least=job.elastic.least,
                wish=job.elastic.most,
                size=state.size,
                placed=len(there),
                gpus=self._recorder.gpus_of(template),
                started=state.started,
                # It is asked when the scheduler rests: what waits then fits nowhere.
                unschedulable=len(there) < len(members),
                resized=state.resized,
                speeds=job.elastic.speeds,
            )
            pod = msgspec.structs.replace(template, scheduler=self._profile or template.scheduler)
            waiting = tuple(uid for uid, member in members.items() if not member.node)
            gang = job.gang or Gang(pod.namespace, job.name, job.elastic.least, state.submitted)
            found.append((demand, WorkerTemplate(gang, pod, (*there, *waiting))))
        return found

    def resize(self, wanted: Mapping[str, int], now: float) -> bool:
        """Give elastic jobs other numbers of pods; returns whether anything changed."""
        changed = False
        for name, count in wanted.items():
            state = self._jobs[name]
            job, task = state.job, state.tasks[0]
            if job.elastic is None:
                raise ValueError(f"the elastic plan resizes {name}, which is not elastic")
            if count or state.size:
                count = min(max(count, job.elastic.least), job.elastic.most)
            if count != state.size:
                state.size, state.resized = count, now
            staying = [uid for uid, m in task.members.items() if m.works or not m.node]
            # Those without a node go first, then the youngest: an elastic job saves its work.
            staying.sort(key=lambda uid: not self._members[uid].works)
            for uid in staying[count:][::-1]:
                self._remove(uid, "evicted", now)
                self._touched[task] = None
                changed = True
            for _ in range(count - len(task.members)):
                template = _named(job.pods[state.created % len(job.pods)])
                self._create_further(template, task, now)
                changed = True
        return changed

    # --- parts ------------------------------------------------------------------------------------

    def _begin(self, job: Job, now: float) -> None:
        together = job.gang is not None or job.elastic is not None
        tasks = [Task(job, None if together else i, now) for i in range(len(job.pods))]
        self._jobs[job.name] = _JobState(job, tasks[:1] if together else tasks, now)

    def _task(self, job: Job, index: int) -> Task:
        tasks = self._jobs[job.name].tasks
        return tasks[index if len(tasks) > 1 else 0]

    def _create_further(self, template: Pod, task: Task, now: float) -> None:
        state = self._jobs[task.job.name]
        state.created += 1
        # No pod of a trace or of manifests has such a name.
        ending = f"+{state.created}"
        renamed = msgspec.structs.replace(
            template, uid=template.uid + ending, name=template.name + ending
        )
        self._create(renamed, task, now, template)

    def _create(self, pod: Pod, task: Task, now: float, template: Pod | None = None) -> None:
        spec = pod.spec
        if self._expects and spec.gpu is not None and not spec.expected_util:
            spec = msgspec.structs.replace(spec, expected_util=_roughly(task.job.util))
        if self._expects and spec.gpu and task.job.kind and not spec.workload:
            spec = msgspec.structs.replace(spec, workload=task.job.kind)
        created = msgspec.structs.replace(
            pod,
            spec=spec,
            created=now,
            scheduler=self._profile or pod.scheduler,
            time_limit=self._estimates.of(task.job, pod.time_limit),
            node="",
            assignment=(),
            bound_at=0.0,
            started=0.0,
            nominated="",
        )
        self._add(template or pod, created, task, now)

    def _add(self, template: Pod, pod: Pod, task: Task, now: float) -> None:
        self._members[pod.uid] = task.members[pod.uid] = Member(pod.uid, task)
        self._templates[pod.uid] = template
        self._recorder.created(pod, task.job.name, now)
        self._api.set_pod(pod)

    def _stop(self, member: Member, now: float) -> None:
        task = member.task
        task.integrate(now)
        if task.job.elastic is None:
            lost = task.lose(now, self._checkpoint)
            self.lost += lost
            for uid, other in task.members.items():
                if other.works and lost:
                    self._recorder.lost(uid, lost)
        member.works = False
        self._touched[task] = None
        self._touch(self._tenancy.leave(member, now))
        self.used[member.node] = None

    def _remove(self, uid: str, how: End, now: float) -> None:
        member = self._members.pop(uid)
        member.task.integrate(now)
        self._note_use(member)
        del self._templates[uid], member.task.members[uid]
        if member.node:
            self._touch(self._tenancy.leave(member, now))
            self.used[member.node] = None
        self._api.delete_uid(uid)
        self._recorder.left(uid, how, now)

    def _note_use(self, member: Member) -> None:
        if member.util:
            self._recorder.used(member.uid, member.worked * member.util)

    def _touch(self, tasks: list[Task]) -> None:
        self._touched.update(dict.fromkeys(tasks))


def _named(pod: Pod) -> Pod:
    """Return the pod with a uid; those of traces have none."""
    return pod if pod.uid else msgspec.structs.replace(pod, uid=f"{pod.namespace}/{pod.name}")


def _roughly(util: float) -> float:
    """Return what a pod expects to use of a GPU: nobody knows it better than to 5 percent.

    It also keeps pods alike that the scheduler would otherwise look at one by one.
    """
    return max(_ROUGHLY, _ROUGHLY * round(util / _ROUGHLY))
