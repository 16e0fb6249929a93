"""How many workers of training jobs would start now, and where: tried on an engine's books.

It is the scheduler's own placement, with quotas, the reservation and the room that is held for
others; what is tried stays until `undo`, so that a plan for many jobs sees what it has given.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np

from alnair.model.elastic_plan import Claim, Cluster
from alnair.model.workload import Gang, Pod, PodSpec
from alnair.scheduler.engine.experiment import Experiment
from alnair.scheduler.engine.view import View
from alnair.scheduler.gangs.gang_refusal import read_refusal
from alnair.scheduler.gangs.gangs import GangState, in_turn
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record, State
from alnair.scheduler.state.without_pods import WithoutPods

_NUMBER: Final = re.compile(r"\d+")
#: Units that wait, those that go first, for which a plan finds room: each is a try.
_CLAIMS: Final = 16
#: What equal workers have in common: where one finds no place, none of them does.
_Alike = tuple[str, str, PodSpec, int]


class WorkerTemplate(msgspec.Struct, frozen=True):
    """What workers of a job are.

    Attributes:
        gang: their PodGroup, which need not exist yet.
        pod: one of them.
        pods: uids of those that there are, who goes first last; None: the members of the PodGroup,
            of which the highest numbers go first.
    """

    gang: Gang
    pod: Pod
    pods: tuple[str, ...] | None = None


class Startable(msgspec.Struct, frozen=True):
    """With how many workers a job could be now.

    Attributes:
        workers: those that have a node already, and those that would get one now.
        kept: those that have one.
        nodes: of the further ones by node, in the order in which they would be placed.
        why: why no more would; empty if all would.
    """

    workers: int
    kept: int = 0
    nodes: tuple[tuple[str, int], ...] = ()
    why: str = ""


class WorkerRoom:
    """Places workers and takes them away (`model.elastic_plan.Room`).

    `worker_room` makes one, and undoes all in the end.

    Args:
        view: of an engine between two steps.
        experiment: of that view.
        lifted: of the same engine; pods that leave are lifted there.
        jobs: by a key that is up to the caller.
        held_back: by namespace, what is kept for it though nobody uses it: resource → base units.
    """

    def __init__(
        self,
        view: View,
        experiment: Experiment,
        lifted: WithoutPods,
        jobs: Mapping[str, WorkerTemplate],
        held_back: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        self._view = view
        self._experiment = experiment
        self._lifted = lifted
        self._held_back = held_back or {}
        self._jobs = {key: _Job(view, experiment, one) for key, one in jobs.items()}
        self._units = {unit.key: unit for unit in view.units()}
        #: Pods of claims that were placed.
        self._claimed: list[Record] = []
        #: Workers of which one found no place since somebody last left.
        self._refused: set[_Alike] = set()

    def cluster(self) -> Cluster:
        """Return the room with what else waits for some: those that go first, and no more."""
        own = {record.pod.uid for job in self._jobs.values() for record in job.waiting}
        gangs = {job.unit_key for job in self._jobs.values()}
        waiting = [
            unit
            for unit in self._units.values()
            if unit.pods
            and unit.key not in gangs
            and own.isdisjoint(unit.pods)
            and not self._has_room(unit)
        ]
        waiting.sort(key=lambda unit: (unit.sort_by_age, unit.order))
        return Cluster(self, [_claim(unit) for unit in waiting[:_CLAIMS]])

    def place(self, key: str, workers: int) -> bool:
        """Place so many further workers of a job, or a claim as a whole, if all of them fit.

        Workers that were released come back first, and only to where they were: whoever makes the
        workers takes the last away, and cannot choose among them.

        Args:
            key: of a job; or of a unit of the queue (`Unit.key`), which is placed as a whole.
            workers: how many; of a claim it is not read.
        """
        job = self._jobs.get(key)
        if job is None:
            return self._place_claim(key)
        back = 0
        while job.away and back < workers and self._comes_back(job):
            back += 1
        if back == workers or not (job.away or self._place(job, workers - back)):
            return True
        self._leave(job, back)
        return False

    def release(self, key: str, workers: int) -> None:
        """Take away so many workers of a job: those placed here last, then those that go first."""
        job = self._jobs[key]
        fresh = min(workers, len(job.placed))
        self._take_back(job, len(job.placed) - fresh)
        self._leave(job, workers - fresh)

    def startable(self, key: str, most: int) -> Startable:
        """Return with how many workers, up to `most`, a job could be now; places none.

        Those that have a node stay where they are. That fewer fit than were found to is taken to
        be impossible, so a refused number says how many to try next.
        """
        job = self._jobs[key]
        kept = len(job.kept) + len(job.placed)
        wanted, low, why = most - kept, 0, ""
        while wanted > low:
            before = len(job.placed)
            refusal = self._place(job, wanted)
            if not refusal:
                nodes = Counter(r.node for r in job.placed[before:])
                self._take_back(job, before)
                return Startable(kept + wanted, kept, tuple(nodes.items()), why)
            why = why or refusal
            found = read_refusal(refusal)
            room = found.room if found and found.room is not None else wanted // 2
            wanted = min(room, wanted - 1)
        return Startable(kept, kept, (), why)

    def undo(self) -> None:
        """Take back all that was placed; pods that were lifted are put back by who lifted them."""
        for job in self._jobs.values():
            self._take_back(job, 0)
        for record in self._claimed:
            self._experiment.take_back(record)
        self._claimed.clear()

    # --- parts ------------------------------------------------------------------------------------

    def _has_room(self, unit: Unit) -> bool:
        """Whether room is held for it already: those who shall leave need not be found again."""
        return all(self._view.nominated_node(record) for record in unit.pods.values())

    def _comes_back(self, job: "_Job") -> bool:
        """Let the last that left be where it was; returns whether that is free."""
        record = job.away[-1]
        self._lifted.put_back(record)
        if self._view.overcommitted(record.row):
            self._lifted.lift(record)
            return False
        job.kept.append(job.away.pop())
        return True

    def _leave(self, job: "_Job", workers: int) -> None:
        for _ in range(workers):
            job.away.append(job.kept.pop())
            self._lifted.lift(job.away[-1])
            self._refused.clear()

    def _place(self, job: "_Job", workers: int) -> str:
        """Place so many together; returns why they do not fit, or an empty text."""
        if job.problem:
            return job.problem
        # While nodes are kept for somebody, it matters who came first.
        alike = None if self._view.reservation else job.alike
        if alike in self._refused:
            return "no worker like it finds a place"
        state = job.state()
        new = [job.worker() for _ in range(workers)]
        state.unit.pods = {r.pod.uid: r for r in new}
        for record in new:
            state.members[record.pod.uid] = record
        state.line_up(self._experiment.profiles)
        self._experiment.hold_for(new, job.waiting)
        placement = self._experiment.gang_placement(state, new)
        outcome = placement.place(workers, {})
        placed = list(placement.statement.placed)
        refusal = outcome.refusal or (outcome.left[0][1] if outcome.left else "")
        if not refusal and (resource := self._takes_what_is_held_back(job.template.pod)):
            refusal = f"{resource} that is free is kept for namespaces within their quota's min"
        if refusal:
            placement.statement.rollback()
            if workers == 1 and alike is not None:
                self._refused.add(alike)
            return refusal
        job.placed += placed
        return ""

    def _take_back(self, job: "_Job", before: int) -> None:
        while len(job.placed) > before:
            self._experiment.take_back(job.placed.pop())
            self._refused.clear()

    def _place_claim(self, key: str) -> bool:
        unit = self._units.get(key)
        if unit is None or not unit.pods:
            return True  # it is gone, or placed: there is nothing to find room for
        waiting = in_turn(unit.pods.values())
        state = self._view.gang_of(waiting[0])
        count = max(1, state.lacking()) if state else 1
        if len(waiting) < count:
            return False  # not all of them are made yet
        copies = []
        for record in waiting:
            copy = record.replacement()
            copy.group = record.group
            copies.append(copy)
        self._experiment.hold_for(waiting, waiting)
        placed = self._experiment.place_unit(unit, copies, count)
        if len(placed) < count:
            for record in reversed(placed):
                self._experiment.take_back(record)
            return False
        self._claimed += placed
        return True

    def _takes_what_is_held_back(self, pod: Pod) -> str:
        """Return a resource of which less is free now than is kept for other namespaces."""
        others: Counter[str] = Counter()
        for namespace, amounts in self._held_back.items():
            if namespace != pod.namespace:
                others.update(dict(amounts))
        if not others or not self._view.borrows(pod.namespace):
            return ""
        columns = self._view.cluster.columns
        alive = np.flatnonzero(columns.alive[: columns.n])
        asked = dict(pod.spec.requests)
        for resource, amount in others.items():
            index = columns.resources.get(resource)
            if index is None or not asked.get(resource):
                continue
            if float(np.maximum(columns.free[index, alive], 0).sum()) < amount:
                return resource
        return ""


@contextmanager
def worker_room(
    view: View,
    jobs: Mapping[str, WorkerTemplate],
    now: float,
    held_back: Mapping[str, Mapping[str, int]] | None = None,
) -> Iterator[WorkerRoom]:
    """Try how many workers of these jobs would start; afterwards the books are as they were.

    Args:
        view: of an engine between two steps, such as one that only follows (`Engine.follow`).
        jobs: by a key that is up to the caller; what each PodGroup shall be, and a worker of it.
        now: seconds since the epoch.
        held_back: by namespace, what is kept for it though nobody uses it: resource → base units.
    """
    with view.experiment(now) as experiment, experiment.attempt() as (_, lifted):
        room = WorkerRoom(view, experiment, lifted, jobs, held_back)
        try:
            yield room
        finally:
            room.undo()


class _Job:
    """A job in the room: who has a node, who was taken away, and who was placed here."""

    def __init__(self, view: View, experiment: Experiment, template: WorkerTemplate) -> None:
        self.template = template
        self._experiment = experiment
        gang, scheduler = template.gang, template.pod.scheduler
        self.unit_key = f"gang:{gang.namespace}/{gang.name}"
        #: Why none of its workers will ever be placed; empty if some may.
        self.problem = template.pod.problem or gang.problem
        if scheduler not in view.profiles:
            served = ", ".join(view.profiles)
            self.problem = f"no scheduler serves {scheduler!r} here: write one of {served}"
        known = view.find_gang((gang.namespace, gang.name))
        if template.pods is not None:
            there = [view.pods[uid] for uid in template.pods if uid in view.pods]
            waiting = [r for r in there if r.state is State.PENDING]
        else:
            there = sorted(known.placed(), key=_ordinal) if known else []
            waiting = list(known.unit.pods.values()) if known else []
        #: Those that have a node; who goes first last.
        self.kept = [r for r in there if r.row >= 0]
        #: Those that wait: room that is held for them is theirs.
        self.waiting: Sequence[Record] = waiting
        #: Those that left, the last one last.
        self.away: list[Record] = []
        self.placed: list[Record] = []
        self.alike = _alike(template, self.waiting)
        self._made = 0

    def state(self) -> GangState:
        """Return the job's gang as it is in the room, with those that have a node there."""
        gang = self.template.gang
        if self.kept:
            # Nodes that are kept for who has waited long are not for a job that runs and grows.
            gang = msgspec.structs.replace(gang, created=self._experiment.now)
        state = GangState((gang.namespace, gang.name))
        state.gang = gang
        state.members = {r.pod.uid: r for r in (*self.kept, *self.placed)}
        state.unit = Unit(self.unit_key, gang=True)
        state.unit.order = sys.maxsize  # whoever waits already came before
        return state

    def worker(self) -> Record:
        """Return a further worker that has no node."""
        self._made += 1
        pod, gang = self.template.pod, self.template.gang
        uid = f"worker-{gang.namespace}/{gang.name}+{self._made}"
        name = f"{gang.name}+{self._made}"
        return self._experiment.record(
            msgspec.structs.replace(pod, uid=uid, name=name, node="", group=gang.name)
        )


def _alike(template: WorkerTemplate, waiting: Iterable[Record]) -> _Alike | None:
    """Return what workers have in common that find a place or do not together.

    None where it matters which job they are of: its other pods, or room that is held for it.
    """
    pod, spec = template.pod, template.pod.spec
    near = template.gang.topology or pod.topology or spec.pod_affinity or spec.spread
    if near or any(record.pod.nominated for record in waiting):
        return None
    return pod.namespace, pod.scheduler, spec, pod.priority


def _ordinal(record: Record) -> tuple[int, str]:
    """Return the number of a StatefulSet's pod: the highest go first."""
    numbers = _NUMBER.findall(record.pod.name)
    return (int(numbers[-1]) if numbers else -1), record.pod.name


def _claim(unit: Unit) -> Claim:
    pods = [record.pod for record in unit.pods.values()]
    return Claim(
        key=unit.key,
        name=unit.name,
        created=min(pod.created for pod in pods),
        priority=max(pod.priority for pod in pods),
    )
