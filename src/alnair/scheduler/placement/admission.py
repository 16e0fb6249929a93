"""What holds a pod back besides its nodes: its namespace's quota, and nodes kept for others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.refusal_message import refusal_message
from alnair.scheduler.gangs.gangs import Gangs, GangState
from alnair.scheduler.gangs.membership import Membership
from alnair.scheduler.placement.backfill import Backfill
from alnair.scheduler.queue.queue import Queue
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Accounts, Record
from alnair.scheduler.state.nodes.columns import Mask
from alnair.scheduler.state.objects.elastic_quotas import Quotas


class Admission:
    """Quotas and the reservation, kept current."""

    def __init__(
        self,
        accounts: Accounts,
        queue: Queue,
        members: Membership,
        gangs: Gangs,
        quotas: Quotas,
        backfill: Backfill,
    ) -> None:
        self._accounts = accounts
        self._queue = queue
        self._members = members
        self._gangs = gangs
        self.quotas = quotas
        self.backfill = backfill

    def follow(self, now: float) -> bool:
        """Take in what changed since the last step; returns whether pods that wait may fit now."""
        usage, quotas = self._accounts.usage, self.quotas
        better = quotas.refresh()
        if better:
            if not usage.counting:
                self._accounts.count_usage()
            self._members.tell_apart(quotas.namespaces)
            self._queue.share_among(self._tenant, quotas.turn)
        for namespace in usage.freed:
            self._queue.turn_changed(namespace)
        usage.freed.clear()
        due = self.next_look()
        if due is not None and due <= now:
            units = list(self._members.units())
            lacking = {state.unit.key: state.lacking() for state in self._gangs.all()}
            better |= self.backfill.look(units, lacking, now)
        return better

    def next_look(self) -> float | None:
        """Return when `follow` has something to do without an event; None if never."""
        return self.backfill.due(len(self._queue))

    def refuse(self, records: Sequence[Record]) -> str:
        """Return why the quota of their namespace keeps these pods back; empty if it does not."""
        if not self._accounts.usage.counting:
            return ""
        asked: dict[str, int] = {}
        for record in records:
            for resource, amount in record.pod.spec.requests:
                asked[resource] = asked.get(resource, 0) + amount
        return self.quotas.refuse(records[0].pod.namespace, asked)

    def allowed(self, unit: Unit, record: Record, now: float) -> Mask | None:
        """Return the rows that the pod may use now, None if it may use all."""
        return self.backfill.allowed(unit, record, now)

    def gang_of(self, record: Record) -> GangState | None:
        """Return the pod's gang."""
        return self._members.gang_of(record)

    def why(self, evaluation: Evaluation, allowed: Mask | NDArray[np.intp] | None) -> str:
        """Return what to tell the owner of a pod that found no node among the allowed ones."""
        if allowed is not None and evaluation.best() is not None:
            return self.backfill.why()
        return refusal_message(evaluation)

    def _tenant(self, namespace: str) -> str:
        return namespace if namespace in self.quotas.namespaces else ""
