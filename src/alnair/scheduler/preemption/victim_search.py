"""The search for victims over all nodes: which row, and which pods, at the lowest cost.

What the resources say of all rows at once (`levels`) bounds from below what victims cost on each
row. Rows are tried exactly in the order of these bounds, until what was found is no dearer than the
next bound, or until as many candidates were found as kube-scheduler would have been content with.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from alnair.model.workload import Pod
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import PostFilterPlugin, Profile
from alnair.scheduler.gangs.gangs import Gangs, in_turn
from alnair.scheduler.preemption.gang_victims import Units
from alnair.scheduler.preemption.loss_bounds import Holder, Judges, Rows
from alnair.scheduler.preemption.losses import IDLE, Cost, Losses
from alnair.scheduler.preemption.reclaim import Reclaim
from alnair.scheduler.preemption.victim_bounds import Bounds, Levels
from alnair.scheduler.preemption.victims import VictimPlan, VictimRules, plan
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.disruption_budgets import budgets
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Column, Mask
from alnair.scheduler.state.objects.elastic_quotas import Quotas
from alnair.scheduler.state.without_pods import WithoutPods

#: Of rows that can only differ in when their victims started, so many are tried exactly.
_TIES: Final = 8
#: So many rows are found one by one, since most often no more are tried.
_FEW: Final = 3


class Search:
    """Searches the books for victims; it leaves them as they were.

    Args:
        accounts: the books.
        gangs: all gangs, of which victims may be members.
        quotas: by which namespaces take back what is theirs; None if there are none.
    """

    def __init__(self, accounts: Accounts, gangs: Gangs, quotas: Quotas | None = None) -> None:
        self._accounts = accounts
        self._gangs = gangs
        self._quotas = quotas
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
    ) -> VictimPlan | None:
        """Return the cheapest victims for a pod, or None if none would help.

        Args:
            record: the pod, which fits nowhere.
            evaluation: of its class, brought up to date.
            post: how far it may go.
            now: seconds since the epoch.
            allowed: the rows that it may use, None for all.
            gone: victims chosen before, which are off the books.
        """
        gone = list(gone)
        rules = self.rules(record, post, now, gone)
        bounds = self.bounds(record, evaluation)
        possible = np.isfinite(bounds.highest) & evaluation.resolvable()
        hopeful = np.flatnonzero(possible if allowed is None else possible & allowed)
        enough = post.candidates(len(hopeful))
        best: VictimPlan | None = None
        found = ties = 0
        for row, least in self._in_order(record, evaluation, bounds, hopeful, now):
            if best is not None:
                if best.cost <= least:
                    break  # neither this row nor those behind it can be better
                ties += best.cost[:-1] <= least[:-1]
                if ties > _TIES:
                    break
            most = best.cost if best else None
            tried = plan(self._accounts, evaluation, row, rules, least, most)
            if isinstance(tried, list):
                continue
            found += 1
            if tried is not None and (best is None or tried.cost < best.cost):
                best = tried
            if found >= enough and best is not None and best.violations == 0:
                break
        return best

    def changed(self, record: Record) -> None:
        """Note that a pod changed where it is."""
        if record.row >= 0:
            self._levels.changed(record.row)

    def bounds(self, record: Record, evaluation: Evaluation) -> Bounds:
        """Return what victims for a pod cost at least on each row, as far as priorities tell."""
        # Resources bound nothing if no filter asks for them.
        requests = record.spec.requests if evaluation.compares_requests else ()
        below = math.inf if self.reclaims(record) else record.pod.priority
        return self._levels.bounds(requests, below)

    def keys(
        self, record: Record, evaluation: Evaluation, bounds: Bounds, rows: Rows, now: float
    ) -> list[Column]:
        """Return what victims for a pod cost at least on some rows, by what decides.

        Args:
            record: the pod.
            evaluation: of its class.
            bounds: for it.
            rows: where room may be made.
            now: seconds since the epoch.
        """
        return self._keys(record, evaluation)(bounds, rows, now)

    def _keys(
        self, record: Record, evaluation: Evaluation
    ) -> Callable[[Bounds, Rows, float], list[Column]]:
        reclaim = self._reclaim(self._asking(record), None)

        def is_all_own(holder: Holder) -> bool:
            namespace, requested = holder
            assert reclaim is not None
            return reclaim.is_all_own(namespace, reclaim.precious(requested))

        judges = Judges(is_all_own if reclaim else None, self.units.fates)
        demand = record.pod.spec.gpu if evaluation.compares_requests else None
        return lambda bounds, rows, now: self._levels.keys(bounds, rows, demand, judges, now)

    def _in_order(
        self, record: Record, evaluation: Evaluation, bounds: Bounds, rows: Rows, now: float
    ) -> Iterator[tuple[int, Cost]]:
        """Return rows and what victims cost there at least, from the cheapest on.

        What lies behind the priorities is looked at only for rows whose turn it is.
        """
        tie = self._accounts.columns.tie
        ask = self._keys(record, evaluation)
        rest = bounds.highest[rows]
        while len(rows):
            first = rest == rest.min()
            alike, rows, rest = rows[first], rows[~first], rest[~first]
            keys = ask(bounds, alike, now)
            for place in _ascending([*keys, -tie[alike]]):
                yield int(alike[place]), (0, *[key.item(place) for key in keys])

    def bookings(self, record: Record, found: VictimPlan, profile: Profile) -> tuple[Booking, ...]:
        """Return the GPUs that the pod will get on the row once the victims are gone."""
        booked: tuple[Booking, ...] = ()
        with WithoutPods(self._accounts, unseen=True) as trial:
            for victim in found.victims:
                if victim.row == found.row:
                    trial.lift(victim)
            for plugin in profile.reserves if record.spec.gpu else ():
                booked += plugin.reserve(record.spec, found.row, self._accounts.cluster) or ()
        return booked

    def rules(
        self, preemptor: Record, post: PostFilterPlugin, now: float, gone: Iterable[Record] = ()
    ) -> VictimRules:
        """Return who may go for a pod, if these victims go anyway."""
        priority = preemptor.pod.priority
        own = _gang_key(preemptor)
        away = frozenset(r.pod.uid for r in gone)

        def is_idle(record: Record) -> bool:
            if not record.pod.idle_since:
                return False
            # What a dead agent said last is no proof: the pod may work again.
            stale = self._accounts.loads.stale(record.row)
            return not stale and post.is_idle(record.pod, now)

        def rank(record: Record) -> int:
            return IDLE if is_idle(record) else record.pod.priority

        def is_there(record: Record) -> bool:
            # Not one that is not there yet, is held for another, or is one of its own.
            return record.state is State.BOUND and not (record.group and _gang_key(record) == own)

        def is_lesser(record: Record) -> bool:
            if record.pod.priority < priority:
                return True
            return record.pod.priority == priority and is_idle(record)

        asking = self._asking(preemptor)
        reclaim = self._reclaim(asking, gone)
        asked = sum(_gpus_touched(r.pod) for r in asking)
        losses = Losses(self._accounts, self.units, reclaim, rank, asked=asked, away=away, now=now)

        def eligible(records: Iterable[Record]) -> list[Record]:
            here = [r for r in records if is_there(r)]
            lesser = [r for r in here if is_lesser(r)]
            if reclaim is None:
                return self.units.eligible(lesser, lambda r: is_there(r) and is_lesser(r), away)
            choice = reclaim.choice()

            def may_go(record: Record) -> bool:
                if not is_there(record):
                    return False
                if is_lesser(record) and choice.by_priority(record, self.units.gang(record, away)):
                    return True
                return reclaim.possible and choice.by_quota(record)

            # What goes by its priority counts before what may go by quota beside it.
            here = losses.in_order(here)[::-1]
            here.sort(key=is_lesser, reverse=True)
            return self.units.eligible([r for r in here if may_go(r)], may_go, away)

        def companions(victims: Sequence[Record]) -> list[Record]:
            return self.units.companions(victims, away)

        return VictimRules(losses, eligible, budgets(self._accounts.objects), companions)

    def reclaims(self, record: Record) -> bool:
        """Return whether the pod, with what its gang lacks, may take back what others borrow."""
        reclaim = self._reclaim(self._asking(record), None)
        return reclaim is not None and reclaim.possible

    def _asking(self, record: Record) -> list[Record]:
        """Return the pod, with those that its gang lacks beside it."""
        state = self._gangs.find(_gang_key(record)) if record.group else None
        if state is None:
            return [record]
        waiting = [r for r in state.unit.pods.values() if r.state is State.PENDING]
        return in_turn(waiting)[: max(1, state.lacking())]

    def _reclaim(self, asking: Iterable[Record], gone: Iterable[Record] | None) -> Reclaim | None:
        """Return what quotas say of who may go for pods; None if they say nothing.

        Args:
            asking: the pods.
            gone: victims chosen before; None leaves out who goes anyway.
        """
        quotas = self._quotas
        if quotas is None or not quotas.namespaces:
            return None
        leaving: dict[str, Record] = {}
        if gone is not None:
            known = self._accounts.records.values()
            going = (r for r in known if r.row >= 0 and (r.evicting or r.pod.deleting))
            leaving = {r.pod.uid: r for r in itertools.chain(gone, going)}
        return Reclaim(quotas, [r.pod for r in asking], leaving.values())


def _ascending(keys: Sequence[Column]) -> Iterator[int]:
    """Return places in lexicographic order of their keys; the first few need no sorting of all."""
    keys = [key for key in keys if (key != key[0]).any()] or [keys[0]]
    left = np.arange(len(keys[0]))
    for _ in range(min(_FEW, len(left))):
        front = left
        for key in keys:
            values = key[front]
            front = front[values == values.min()]
            if len(front) == 1:
                break
        yield int(front[0])
        left = left[left != front[0]]
    yield from left[np.lexsort([key[left] for key in reversed(keys)])].tolist()


def _gang_key(record: Record) -> tuple[str, str]:
    return record.pod.namespace, record.group


def _gpus_touched(pod: Pod) -> int:
    demand = pod.spec.gpu
    return demand.whole + bool(demand.memory_mib) if demand else 0
