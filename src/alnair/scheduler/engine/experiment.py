"""Trying things on the engine's own books, to see what would become of pods; all is undone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.gangs.gangs import GangState
from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.gang_placement import GangPlacement
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.placement.unit_placement import place_unit
from alnair.scheduler.preemption.nominations import Nominations
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record, State
from alnair.scheduler.state.without_pods import WithoutPods


class Experiment:
    """A series of attempts on the engine's books, each undone when its `with` block is left.

    Evaluations are the experiment's own: what the engine keeps for pods that really wait stays.

    Args:
        context: the engine's.
        admission: the engine's: quotas and the reservation hold here, too.
        nominations: the engine's: room that is held for pods.
        now: seconds since the epoch.

    Attributes:
        admission: what holds pods back besides their nodes.
        now: seconds since the epoch.
    """

    def __init__(
        self, context: EngineContext, admission: Admission, nominations: Nominations, now: float
    ) -> None:
        self._nominations = nominations
        evaluations = Evaluations(context.accounts.cluster)
        self._context = msgspec.structs.replace(context, evaluations=evaluations)
        self.admission = admission
        self.now = now

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The engine's profiles, by scheduler name."""
        return self._context.profiles

    def evaluate(self, spec: PodSpec, profile: Profile) -> Evaluation:
        """Return what all nodes are worth to a class of pods, as the attempt has left the books."""
        return self._context.evaluations.of(spec, profile)

    @contextmanager
    def attempt(self) -> Iterator[tuple[Statement, WithoutPods]]:
        """Place pods on the statement, and lift others off the books; leaving undoes both."""
        accounts = self._context.accounts
        statement = Statement(accounts, self._context.evaluations, self.now)
        with WithoutPods(accounts) as lifted:
            try:
                yield statement, lifted
            finally:
                statement.rollback()

    @contextmanager
    def gang_attempt(self, state: GangState, pods: Sequence[Record]) -> Iterator[GangPlacement]:
        """Place pods of a gang by its rules; leaving takes them off the books again."""
        placement = GangPlacement(self._context, self.admission, state, pods, self.now)
        try:
            yield placement
        finally:
            placement.statement.rollback()

    # --- one step after another, undone by whoever takes it ---------------------------------------

    def record(self, pod: Pod) -> Record:
        """Return a pod that nobody knows yet as one that waits."""
        record = Record(pod)
        record.group = pod.group
        self._context.members.classify(record)
        return record

    def hold_for(self, pods: Sequence[Record], own: Iterable[Record] = ()) -> None:
        """Book the room that is held against these pods, but for what is held for their own."""
        uids = {r.pod.uid for r in (*pods, *own)}
        self._nominations.hold(min(r.pod.priority for r in pods), uids)

    def gang_placement(self, state: GangState, pods: Sequence[Record]) -> GangPlacement:
        """Return a try to place pods of a gang by its rules; what it places stays."""
        return GangPlacement(self._context, self.admission, state, pods, self.now)

    def place_unit(self, unit: Unit, pods: Sequence[Record], count: int) -> list[Record]:
        """Place so many pods of a unit, and more if they fit; returns those, which stay."""
        allowed = self.admission.allowed(unit, pods[0], self.now)
        return place_unit(self._context, self.admission, pods, count, self.now, allowed).placed

    def take_back(self, record: Record) -> None:
        """Take a pod that was placed here off the books."""
        self._context.accounts.release(record, State.PENDING)
