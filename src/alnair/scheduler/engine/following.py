"""An engine that decides nothing and only follows: it takes over what the leader holds for others.

Who asks such an engine what would start now hears what the leader would say.
"""

from collections.abc import Sequence

from alnair.model.api_types import Holdings
from alnair.scheduler.engine import events
from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.reservation import Reservation
from alnair.scheduler.preemption.preemption import Preemption
from alnair.scheduler.state.accounts import State


class Following:
    """Room for pods and nodes that another engine holds.

    Args:
        context: what is known.
        admission: keeps nodes.
        preemption: holds room.
    """

    def __init__(
        self, context: EngineContext, admission: Admission, preemption: Preemption
    ) -> None:
        self._context = context
        self._admission = admission
        self._nominations = preemption.nominations

    def follow(self, batch: Sequence[events.Event], held: Holdings | None) -> None:
        """Take in what an engine otherwise learns as it decides.

        Args:
            batch: what happened.
            held: what the leader says that it holds for others; None if nobody says.
        """
        self._admission.follow()
        self._context.members.refine_classes()
        self._pods(batch)
        if held is not None:
            self._holdings(held)

    def _pods(self, batch: Sequence[events.Event]) -> None:
        """Follow what pods say themselves of the room that is held for them."""
        for event in batch:
            if not isinstance(event, events.PodChanged):
                continue
            pod = event.pod
            record = self._context.accounts.records.get(pod.uid)
            if record is None or record.state is not State.PENDING:
                continue
            if self._nominations.node(pod) != pod.nominated:
                self._nominations.drop(pod.uid)
                if pod.nominated and pod.scheduler in self._context.profiles:
                    self._nominations.add(record, pod.nominated, None)

    def _holdings(self, held: Holdings) -> None:
        """Take over what the leader says that it holds; pods' own word stays beside it."""
        records = self._context.accounts.records
        for room in held.room:
            record = records.get(room.uid)
            if record is not None and record.state is State.PENDING:
                self._nominations.add(record, room.node, None, reclaimed=room.reclaimed)
        self._admission.reserved.reservation = self._reservation(held)

    def _reservation(self, held: Holdings) -> Reservation | None:
        if held.nodes is None:
            return None
        key = held.nodes.unit
        unit = next((u for u in self._context.members.units() if u.key == key), None)
        if unit is None:
            return None
        row_of = self._context.accounts.columns.row_of
        rows = tuple(sorted(row_of[name] for name in held.nodes.nodes if name in row_of))
        return Reservation(unit, rows, float(held.nodes.until))
