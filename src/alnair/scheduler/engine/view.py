"""What an engine knows, for those who ask: explanations, figures, snapshots, plans, tests.

They read it between two steps of the engine and change nothing. Records, gangs and units are the
engine's own objects: read them, keep no list of them over a step, and never write to them. Whoever
wants to know what would become of pods tries it in an `experiment`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from alnair.model.workload import PodSpec
from alnair.scheduler.engine.experiment import Experiment
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.gangs.gangs import GangKey, GangState
from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.reservation import Reservation
from alnair.scheduler.preemption.nominations import Nomination
from alnair.scheduler.preemption.preemption import Preemption
from alnair.scheduler.queue.unit import Place, Unit
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.objects.elastic_quotas import Quotas

_NOTHING: Final[Mapping[str, Record]] = {}


class View:
    """What an engine knows.

    Args:
        context: the engine's.
        admission: the engine's.
        preemption: the engine's.

    Attributes:
        cluster: nodes with their GPUs, zones and loads, indexes of pods and volumes, and API
            objects; what plugins see.
        pods: all that are known, by uid.
        profiles: by scheduler name.
    """

    def __init__(
        self, context: EngineContext, admission: Admission, preemption: Preemption
    ) -> None:
        self._context = context
        self._admission = admission
        self._preemption = preemption
        self.cluster: Cluster = context.accounts.cluster
        self.pods: Mapping[str, Record] = context.accounts.records
        self.profiles: Mapping[str, Profile] = context.profiles

    # --- what is there ----------------------------------------------------------------------------

    def on_row(self, row: int) -> Mapping[str, Record]:
        """Return the pods that are booked on a node's row, by uid, in the order of booking."""
        return self._context.accounts.on_row.get(row, _NOTHING)

    def gangs(self) -> Iterable[GangState]:
        """Return all gangs: PodGroups, and groups whose PodGroup is missing."""
        return self._context.gangs.all()

    def find_gang(self, key: GangKey) -> GangState | None:
        """Return the gang of this namespace and name."""
        return self._context.gangs.find(key)

    def overcommitted(self, row: int) -> bool:
        """Return whether more is booked on a row than it has, of anything."""
        return self._context.accounts.overcommitted(row)

    def gang_of(self, record: Record) -> GangState | None:
        """Return the pod's gang."""
        return self._context.members.gang_of(record)

    def units(self) -> Iterable[Unit]:
        """Return the units of the queue: lone pods and gangs, with those on their way."""
        return self._context.members.units()

    def unit_of(self, record: Record) -> Unit | None:
        """Return what the pod is tried with; None if it is not to be tried."""
        return self._context.members.unit_of(record)

    def count(self, place: Place) -> int:
        """Return the number of units in a place of the queue."""
        return self._context.queue.count(place)

    def plugin_states(self) -> dict[str, Any]:
        """Return what plugins have learned, by their names: values that msgspec can encode."""
        return self._context.observers.save()

    # --- what it is worth -------------------------------------------------------------------------

    def evaluate(self, spec: PodSpec, profile: Profile) -> Evaluation:
        """Return what all nodes are worth to a class of pods now."""
        return self._context.evaluations.of(spec, profile)

    @property
    def classes(self) -> int:
        """Number of classes of pods whose evaluations are kept."""
        return len(self._context.evaluations)

    # --- what holds a pod back, or a place for it -------------------------------------------------

    @property
    def reservation(self) -> Reservation | None:
        """The nodes that are kept for what has waited long."""
        return self._admission.reserved.reservation

    def quota_refusal(self, record: Record) -> str:
        """Return why the quota of the pod's namespace keeps it back; empty if it does not."""
        return self._admission.refuse([record])

    @property
    def quotas(self) -> Quotas:
        """Elastic quotas, and what is used of them."""
        return self._context.quotas

    def borrows(self, namespace: str) -> bool:
        """Return whether a namespace has no quota, or uses more than its `min` of anything."""
        return self.quotas.of(namespace) is None or self.quotas.borrows(namespace)

    def nominations(self) -> Iterator[Nomination]:
        """Return the room that is held for pods until others have left."""
        return iter(self._preemption.nominations)

    def nominated_node(self, record: Record) -> str:
        """Return the node where room is held for the pod until victims have left; mostly empty."""
        return self._preemption.nominations.node(record.pod)

    def preemption_outlook(self, record: Record, now: float) -> str:
        """Return what preemption can do for a lone pod that fits nowhere; empty if it may not."""
        return self._preemption.outlook(record, now)

    # --- what would be ----------------------------------------------------------------------------

    @contextmanager
    def experiment(self, now: float = 0.0, pods: Sequence[Record] = ()) -> Iterator[Experiment]:
        """Try things on the engine's own books; afterwards these are as they were.

        Args:
            now: seconds since the epoch.
            pods: those it is about: room that is held for others against them counts as taken.
        """
        if pods:
            self._preemption.before(pods)
        try:
            yield Experiment(self._context, self._admission, self._preemption.nominations, now)
        finally:
            self._preemption.nominations.let_go()
