"""What holds a pod back besides its nodes: its namespace's quota, and nodes kept for others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.refusal_message import refusal_message
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.reservation import Reserved
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.nodes.columns import Mask


class Admission:
    """Quotas and the reservation.

    Args:
        context: whose quotas, and who waits.

    Attributes:
        reserved: nodes that are kept.
    """

    def __init__(self, context: EngineContext) -> None:
        self._accounts = context.accounts
        self._queue = context.queue
        self._members = context.members
        self._quotas = context.quotas
        self.reserved = Reserved(context.accounts.columns)

    def follow(self) -> bool:
        """Take in what changed since the last step; returns whether pods that wait may fit now."""
        usage = self._accounts.usage
        changed = self._quotas.refresh()
        if changed:
            if not usage.counting:
                self._accounts.count_usage()
            self._members.tell_apart(self._quotas.namespaces)
            self._queue.tenants_changed()
        for namespace in usage.freed:
            self._queue.turn_changed(namespace)
        usage.freed.clear()
        return changed

    def refuse(self, records: Sequence[Record]) -> str:
        """Return why the quota of their namespace keeps these pods back; empty if it does not."""
        if not self._accounts.usage.counting:
            return ""
        asked: dict[str, int] = {}
        for record in records:
            for resource, amount in record.pod.spec.requests:
                asked[resource] = asked.get(resource, 0) + amount
        return self._quotas.refuse(records[0].pod.namespace, asked)

    def allowed(self, unit: Unit, record: Record, now: float) -> Mask | None:
        """Return the rows that the pod may use now, None if it may use all."""
        return self.reserved.allowed(unit, record, now)

    def why(self, evaluation: Evaluation, allowed: Mask | NDArray[np.intp] | None) -> str:
        """Return what to tell the owner of a pod that found no node among the allowed ones."""
        if allowed is not None and evaluation.best() is not None:
            return self.reserved.why()
        return refusal_message(evaluation)
