"""Which unit of the queue each pod belongs to: its gang's, or one of its own; and its class."""

from collections.abc import Iterable, Iterator, Mapping

from alnair.model.workload import LabelSelector, Pod
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.gangs.gangs import Gangs, GangState, lone_key
from alnair.scheduler.queue.queue import Queue
from alnair.scheduler.queue.unit import Place, Unit
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.pods.pod_classes import Classes


class Membership:
    """Puts pods into the queue and takes them out, alone or with their gang."""

    def __init__(
        self, accounts: Accounts, queue: Queue, gangs: Gangs, profiles: Mapping[str, Profile]
    ) -> None:
        self._accounts = accounts
        self._queue = queue
        self._gangs = gangs
        self._profiles = profiles
        self._classes = Classes()
        self._generation = 0
        # Of lone pods: those in the queue, and those whose Binding is on the way and may fail.
        self._units: dict[str, Unit] = {}

    def units(self) -> Iterator[Unit]:
        """Return the units of the queue: lone pods and gangs."""
        yield from self._units.values()
        yield from (state.unit for state in self._gangs.all() if state.unit.pods)

    def classify(self, record: Record) -> None:
        """Take in what the pod's selectors look at, and find its class."""
        self._classes.notice(record.pod.spec)
        record.spec = self._classes.of(record.pod)

    def notice_peers(self, kind: str, selector: LabelSelector) -> None:
        """Take in what a Service or a controller of pods selects."""
        self._classes.notice_peers(kind, selector)

    def tell_apart(self, namespaces: Iterable[str]) -> None:
        """Let pods of these namespaces be classes of their own: they have quotas."""
        self._classes.tell_apart(namespaces)

    def forget_unit(self, record: Record) -> None:
        """Drop the unit of a lone pod: it is bound, and will not be tried again."""
        self._units.pop(record.pod.uid, None)

    def enqueue(self, record: Record, old: Pod | None) -> None:
        """Put a pending pod into the queue; `old` is what was known of it before."""
        pod = record.pod
        profile = self._profiles[pod.scheduler]
        if pod.deleting or any(p.pre_enqueue(pod) for p in profile.pre_enqueues):
            self.dequeue(record)
            return
        state = self.gang_of(record)
        unit = state.unit if state else self._units.setdefault(pod.uid, Unit(pod.uid))
        if pod.uid in unit.pods:
            if old is None or not _news(old, pod):
                return
            if state:
                state.line_up(self._profiles)
        elif state:
            state.line_up_too(self._profiles, pod)
        unit.pods[pod.uid] = record
        if not state:
            unit.sort = unit.sort_by_age = lone_key(profile, pod)
        if unit.place is not Place.BACKOFF:
            self._queue.activate(unit)

    def gang_changed(self, state: GangState) -> None:
        """Take in that the PodGroup is there now, is gone, or says something else."""
        if state.unit.pods:
            state.line_up(self._profiles)
            self.retry_gang(state)

    def dequeue(self, record: Record) -> None:
        """Take a pod out of the queue."""
        unit = self.unit_of(record)
        if unit is None:
            return
        unit.pods.pop(record.pod.uid, None)
        if not unit.pods:
            self._queue.drop(unit)
        if not record.group:
            self._units.pop(record.pod.uid, None)

    def unit_of(self, record: Record) -> Unit | None:
        """Return what the pod is tried with; None if it is not to be tried."""
        state = self.gang_of(record)
        return state.unit if state else self._units.get(record.pod.uid)

    def gang_of(self, record: Record) -> GangState | None:
        """Return the pod's gang."""
        if not record.group:
            return None
        return self._gangs.find((record.pod.namespace, record.group))

    def join(self, record: Record) -> None:
        """Let a pod into the gang that its label names."""
        pod = record.pod
        record.group = pod.group
        if pod.group:
            self._gangs.of((pod.namespace, pod.group)).members[pod.uid] = record

    def leave_gang(self, record: Record) -> None:
        """Take a pod out of its gang, and out of the queue."""
        self.dequeue(record)
        if state := self.gang_of(record):
            state.members.pop(record.pod.uid, None)
            self._gangs.forget_if_empty(state)
        record.group = ""

    def regroup(self, record: Record) -> None:
        """Follow the pod's label, but not while its gang counts on it."""
        pod = record.pod
        if pod.group == record.group or record.state is State.ASSUMED:
            return
        if pod.scheduler not in self._profiles:
            return
        self.leave_gang(record)
        self.join(record)
        if (state := self.gang_of(record)) and state.unit.pods:
            self.retry_gang(state)  # a member that is bound makes it lack one less

    def retry_gang(self, state: GangState) -> None:
        """Try a gang when its turn comes, unless it backs off."""
        if state.unit.place is not Place.BACKOFF:
            self._queue.activate(state.unit)

    def refine_classes(self) -> None:
        """Follow a selector that is new: pods that were alike may not be any more."""
        if self._generation == self._classes.generation:
            return
        self._generation = self._classes.generation
        for record in self._accounts.records.values():
            if record.state is not State.PENDING:
                continue
            record.spec = self._classes.of(record.pod)
            unit = self.unit_of(record)
            if unit is not None and unit.waiting:
                self._queue.activate(unit)  # it waits with pods of its old class


def _news(old: Pod, pod: Pod) -> bool:
    """Return whether a pending pod changed in what decides when and where it goes."""
    return (
        old.spec != pod.spec
        or old.labels != pod.labels
        or old.problem != pod.problem
        or (old.priority, old.created) != (pod.priority, pod.created)
    )
