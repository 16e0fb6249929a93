"""The search for victims over all nodes: which row, and which pods, at the lowest cost.

What the resources say of all rows at once (`levels`) bounds from below what victims cost on each
row. Rows are tried exactly in the order of these bounds, until what was found is no dearer than the
next bound, or until as many candidates were found as kube-scheduler would have been content with.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from alnair.scheduler.accounts import Accounts, Record, State
from alnair.scheduler.budgets import budgets
from alnair.scheduler.columns import Mask
from alnair.scheduler.devices import Booking
from alnair.scheduler.evaluation import Evaluation
from alnair.scheduler.framework import PostFilterPlugin, Profile
from alnair.scheduler.gangs import Gangs
from alnair.scheduler.levels import Bounds, Levels
from alnair.scheduler.units import Units
from alnair.scheduler.victims import IDLE, Plan, Rules, plan
from alnair.scheduler.what_if import WhatIf

#: Of rows that can only differ in when their victims started, so many are tried exactly.
_TIES: Final = 8


class Search:
    """Searches the books for victims; it leaves them as they were.

    Args:
        accounts: the books.
        gangs: all gangs, of which victims may be members.
    """

    def __init__(self, accounts: Accounts, gangs: Gangs) -> None:
        self._accounts = accounts
        self.units = Units(gangs)
        self._levels = Levels(accounts)

    def best(
        self,
        record: Record,
        evaluation: Evaluation,
        post: PostFilterPlugin,
        now: float,
        allowed: Mask | None = None,
        gone: Iterable[Record] = (),
    ) -> Plan | None:
        """Return the cheapest victims for a pod, or None if none would help.

        Args:
            record: the pod, which fits nowhere.
            evaluation: of its class, brought up to date.
            post: how far it may go.
            now: seconds since the epoch.
            allowed: the rows that it may use, None for all.
            gone: victims chosen before, which are off the books.
        """
        rules = self.rules(record, post, now, gone)
        bounds = self.bounds(record, evaluation)
        possible = np.isfinite(bounds.highest) & evaluation.resolvable()
        hopeful = np.flatnonzero(possible if allowed is None else possible & allowed)
        tie = self._accounts.columns.tie
        keys = (-tie[: bounds.highest.size], bounds.started, bounds.count, bounds.total)
        order = np.lexsort([key[hopeful] for key in (*keys, bounds.highest)])
        enough = post.candidates(len(hopeful))
        best: Plan | None = None
        found = ties = 0
        for row in hopeful[order]:
            least = (0, *(float(b[row]) for b in (bounds.highest, bounds.total, bounds.count)))
            if best is not None:
                if best.cost <= (*least, float(bounds.started[row])):
                    break  # neither this row nor those behind it can be better
                ties += best.cost[:-1] <= least
                if ties > _TIES:
                    break
            tried = plan(self._accounts, evaluation, int(row), rules)
            if not isinstance(tried, Plan):
                continue
            found += 1
            if best is None or tried.cost < best.cost:
                best = tried
            if found >= enough and best.violations == 0:
                break
        return best

    def bounds(self, record: Record, evaluation: Evaluation) -> Bounds:
        """Return what victims for a pod cost at least on each row."""
        # Resources bound nothing if no filter asks for them.
        requests = record.spec.requests if evaluation.asks_for_resources else ()
        return self._levels.bounds(requests, record.pod.priority)

    def bookings(self, record: Record, found: Plan, profile: Profile) -> tuple[Booking, ...]:
        """Return the GPUs that the pod will get on the row once the victims are gone."""
        booked: tuple[Booking, ...] = ()
        with WhatIf(self._accounts, unseen=True) as trial:
            for victim in found.victims:
                if victim.row == found.row:
                    trial.lift(victim)
            for plugin in profile.reserves if record.spec.gpu else ():
                booked += plugin.reserve(record.spec, found.row, self._accounts.cluster) or ()
        return booked

    def rules(
        self, preemptor: Record, post: PostFilterPlugin, now: float, gone: Iterable[Record] = ()
    ) -> Rules:
        """Return who may go for a pod, if these victims go anyway."""
        priority = preemptor.pod.priority
        own = _gang_key(preemptor)
        away = frozenset(r.pod.uid for r in gone)

        def rank(record: Record) -> int:
            return IDLE if post.is_idle(record.pod, now) else record.pod.priority

        def may_go(record: Record) -> bool:
            if record.state is not State.BOUND or (record.group and _gang_key(record) == own):
                return False  # not there yet, held for another, or one of its own
            if record.pod.priority < priority:
                return True
            return record.pod.priority == priority and post.is_idle(record.pod, now)

        def eligible(records: Iterable[Record]) -> list[Record]:
            return self.units.eligible([r for r in records if may_go(r)], may_go, away)

        def companions(victims: Sequence[Record]) -> list[Record]:
            return self.units.companions(victims, away)

        return Rules(rank, eligible, budgets(self._accounts.objects), companions)


def _gang_key(record: Record) -> tuple[str, str]:
    return record.pod.namespace, record.group
