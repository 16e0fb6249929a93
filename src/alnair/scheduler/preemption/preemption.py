"""Preemption: a pod that fits nowhere makes less important ones leave, and holds their room.

A gang does so as a whole or not at all. The search for victims is
`alnair.scheduler.preemption.victim_search`.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from alnair.model.action import PREEMPTED, Action, Evict, Nominate
from alnair.model.plurals import counted
from alnair.model.workload import Planned, Pod
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import PostFilterPlugin, Profile, Reason
from alnair.scheduler.gangs.gang_refusal import EVICTING, WAITING_FOR_VICTIMS
from alnair.scheduler.gangs.gangs import GangState
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.gang_placement import topology_of
from alnair.scheduler.preemption.dry_run import dry_run, ineligible, no_help
from alnair.scheduler.preemption.gang_room import GangRoom, Landing
from alnair.scheduler.preemption.losses import IDLE
from alnair.scheduler.preemption.nominations import Nominations
from alnair.scheduler.preemption.retries import Retries
from alnair.scheduler.preemption.victim_search import Search
from alnair.scheduler.preemption.victims import NO_VICTIMS, is_leaving_for
from alnair.scheduler.queue.unit import Place, Unit
from alnair.scheduler.state.accounts import Record, State
from alnair.scheduler.state.nodes.columns import Mask

#: Nodes on which preemption is tried out to tell a person what it can do.
_TOLD: Final = 500


class Preemption:
    """Makes room for pods, and holds it.

    Args:
        context: what to decide from.
    """

    def __init__(self, context: EngineContext) -> None:
        self._accounts = context.accounts
        self._evaluations = context.evaluations
        self._profiles = context.profiles
        self._queue = context.queue
        self._members = context.members
        self._counters = context.counters
        self._search = Search(context.accounts, context.gangs, context.quotas)
        self._gang_room = GangRoom(context, self._search)
        self.nominations = Nominations(context.accounts)
        #: No pod on a node has had a lower priority: such ones need not look for victims.
        self._lowest: float = float("inf")
        self.retries = Retries(context.queue)
        #: Room is not held any more that was held.
        self._freed = False

    # --- what happens ---------------------------------------------------------------------------

    def noticed(self, record: Record, old: Pod | None) -> None:
        """Take in a pod that is new or changed, before anything else follows from it.

        Args:
            record: the pod's.
            old: what was known of it before; None = it is new.
        """
        pod = record.pod
        if pod.node:
            self._lowest = min(self._lowest, IDLE if pod.idle_since else pod.priority)
            if old is None or _worth(old) != _worth(pod):
                self._search.changed(record)
            if record.state is not State.BOUND or (old and old.idle_since != pod.idle_since):
                self.retries.changed()
        if pod.node or pod.deleting or pod.gated or pod.finished:
            self.gone(pod.uid)
        elif old is None and pod.nominated and pod.scheduler in self._profiles:
            self.nominations.add(record, pod.nominated, None)  # by the leader before this one

    def gone(self, uid: str) -> None:
        """Hold no room for a pod that has a node or wants none any more."""
        self._freed |= self.nominations.drop(uid) is not None

    def left(self, node: str) -> None:
        """Take in that a pod left the node or will not: who waits there for no other is tried."""
        for nomination in self.nominations.on(node) if len(self.nominations) else ():
            if not self._waits(nomination.record, node):
                self._activate(nomination.record)

    def failed(self, node: str, now: float) -> None:
        """Take in that a pod there could not be evicted: who waits for its room backs off."""
        for nomination in self.nominations.on(node):
            unit = self._members.unit_of(nomination.record)
            if unit is not None and unit.pods and unit.place is Place.PARKED:
                unit.attempts += 1
                self._queue.back_off(unit, now)

    # --- decisions ------------------------------------------------------------------------------

    def before(self, records: Collection[Record]) -> None:
        """Book the room that is held against pods which are about to be tried."""
        if len(self.nominations):
            own = {r.pod.uid for r in records}
            self.nominations.hold(min(r.pod.priority for r in records), own)

    def held_for(self, records: Iterable[Record]) -> dict[str, Planned]:
        """Return where room is held for pods of a gang, by name."""
        held = ((r.pod.name, self.nominations.node(r.pod)) for r in records)
        return {name: (node, {}) for name, node in held if node}

    def after(self) -> bool:
        """Book no held room any more: decisions are over; returns whether others may use some."""
        self.nominations.let_go()
        freed, self._freed = self._freed, False
        return freed

    def for_pod(
        self,
        unit: Unit,
        record: Record,
        evaluation: Evaluation,
        allowed: Mask | None,
        now: float,
        actions: list[Action],
    ) -> str:
        """Make room for a pod that fits nowhere; returns what to tell its owner beside that.

        Args:
            unit: of the queue, of this pod alone.
            record: the pod.
            evaluation: of its class, brought up to date.
            allowed: the rows that it may use, None for all.
            now: seconds since the epoch.
            actions: where decisions go.
        """
        post = self.may_preempt([record])
        if post is None or evaluation.best() is not None:
            self.give_up([record], actions)
            return ""  # it may not, or it waits for nodes that are reserved
        if reason := self._ineligible(record, evaluation):
            return f" preemption: {reason}"
        found = self._search.best(record, evaluation, post, now, allowed)
        if found is None:
            self.give_up([record], actions)
            self.retries.add((record.key, record.pod.priority), unit, now)
            return ""
        landing = (record, found.row, self._search.bookings(record, found, self._profile(record)))
        self._decide(unit, [landing], found.victims, actions)
        return _preempting(len(found.victims))

    def outlook(self, record: Record, now: float) -> str:
        """Return what preemption can do for a lone pod that fits nowhere, in upstream's words.

        Empty where it may not preempt at all, or where telling would take long.
        """
        profile = self._profile(record)
        post = profile.post_filter
        evaluation = self._evaluations.of(record.spec, profile)
        if post is None or evaluation.refusal is not None:
            return ""
        if reason := self._ineligible(record, evaluation):
            return reason
        rows = np.flatnonzero(evaluation.resolvable())
        if not len(rows):
            return ""  # the reasons of the nodes say it
        if record.pod.priority <= self._lowest and not self._search.reclaims(record):
            reasons: list[Sequence[Reason]] = [[NO_VICTIMS]] * len(rows)
        elif len(rows) > _TOLD:
            return ""
        else:
            rules = self._search.rules(record, post, now)
            plans, reasons = dry_run(
                self._accounts, evaluation, map(int, rows), rules, post.candidates(len(rows))
            )
            if plans:
                count = len(min(plans, key=lambda p: p.cost).victims)
                return f"room can be made by evicting {counted(count, 'pod')}"
        return no_help(len(self._accounts.columns), reasons)

    def for_gang(
        self,
        state: GangState,
        pods: Sequence[Record],
        allowed: Sequence[Mask | None],
        lacking: int,
        now: float,
        actions: list[Action],
    ) -> str:
        """Make room for as many pods of a gang as it lacks, or for none.

        Args:
            state: of the gang.
            pods: those that wait, in the order in which they are tried.
            allowed: the rows that each of them may use, None for all.
            lacking: how many of them must be placed together.
            now: seconds since the epoch.
            actions: where decisions go.
        """
        post = self.may_preempt(pods) if pods else None
        if post is None:
            self.give_up(state.unit.pods.values(), actions)
            return ""
        nominated = [(r, node) for r in pods if (node := self.nominations.node(r.pod))]
        if any(self._waits(record, node) for record, node in nominated):
            return WAITING_FOR_VICTIMS
        topology = topology_of(state, pods)
        found = self._gang_room.best(
            list(zip(pods, allowed, strict=True)),
            max(1, lacking),
            topology.required if topology else "",
            [r.row for r in state.placed() if r.row >= 0],
            post,
            now,
        )
        if found is None:
            self.give_up(state.unit.pods.values(), actions)
            self.retries.add(state.key, state.unit, now)
            return ""
        self._decide(state.unit, found.landings, found.victims, actions)
        return _preempting(len(found.victims))

    def may_preempt(self, records: Sequence[Record]) -> PostFilterPlugin | None:
        """Return the plugin of the pods' profile if they may preempt and there may be victims."""
        if not all(r.pod.preempts for r in records):
            return None
        lowest = min(r.pod.priority for r in records)
        if lowest <= self._lowest and not self._search.reclaims(records[0]):
            return None
        return self._profile(records[0]).post_filter

    def _decide(
        self,
        unit: Unit,
        landings: Sequence[Landing],
        victims: Sequence[Record],
        actions: list[Action],
    ) -> None:
        preemptor = landings[0][0].pod
        self._counters.preempted(len(victims))
        landing = {record.pod.uid for record, _, _ in landings}
        reclaimed = self._search.reclaims(landings[0][0])
        self.give_up((r for r in unit.pods.values() if r.pod.uid not in landing), actions)
        for record, row, bookings in landings:
            node = self._accounts.columns.nodes[row]
            assert node is not None  # rows without a node take no pod
            for other in self.nominations.on(node.name):
                # It may not fit any more; let it look for another place soon.
                if other.record.pod.priority < record.pod.priority and not other.reclaimed:
                    self._activate(other.record)
                    self.give_up([other.record], actions)
            self.nominations.add(record, node.name, bookings, reclaimed=reclaimed)
            actions.append(Nominate(record.pod, node.name))
        going = [v for v in victims if not (v.evicting or v.pod.deleting)]
        for victim in going:
            victim.evicting = PREEMPTED
        for victim in going:
            message = f"Preempted by pod {preemptor.uid} on node {victim.node}"
            if shrunk := self._search.units.shrunk(victim):
                message += f"; {shrunk}"
            actions.append(Evict(victim.pod, PREEMPTED, message))
        self.retries.succeeded(unit)

    def give_up(self, records: Iterable[Record], actions: list[Action]) -> None:
        """Hold no room for pods any more that cannot use it now, and say so on them."""
        for record in records:
            if self.nominations.drop(record.pod.uid):
                self._freed = True
                actions.append(Nominate(record.pod, ""))

    def _activate(self, record: Record) -> None:
        unit = self._members.unit_of(record)
        if unit is not None and unit.pods and unit.place is not Place.BACKOFF:
            self._queue.activate(unit)

    def _waits(self, record: Record, node: str) -> bool:
        """Return whether a victim of the pod's priority or a lower one is leaving its node."""
        row = self._accounts.columns.row_of.get(node, -1)
        reclaimed = self.nominations.reclaimed(record.pod)
        return any(
            is_leaving_for(other, record.pod, reclaimed=reclaimed)
            for other in self._accounts.on_row.get(row, {}).values()
        )

    def _ineligible(self, record: Record, evaluation: Evaluation) -> str:
        node = self.nominations.node(record.pod)
        row = self._accounts.columns.row_of.get(node, -1)
        here = self._accounts.on_row.get(row, {}).values()
        hopeless = bool(node) and self._hopeless(evaluation, node)
        reclaimed = self.nominations.reclaimed(record.pod)
        return ineligible(record.pod, here, hopeless=hopeless, reclaimed=reclaimed)

    def _hopeless(self, evaluation: Evaluation, node: str) -> bool:
        row = self._accounts.columns.row_of.get(node, -1)
        return row < 0 or not (evaluation.feasible(row) or evaluation.resolvable()[row])

    def _profile(self, record: Record) -> Profile:
        return self._profiles[record.pod.scheduler]


def _preempting(victims: int) -> str:
    pods = "pod" if victims == 1 else "pods"
    return f"{EVICTING}{victims} {pods} to make room."


def _worth(pod: Pod) -> tuple[object, ...]:
    """Return what of a pod on a node decides what it costs to evict it."""
    return pod.priority, pod.started, pod.bound_at, pod.saved_at, pod.idle_since, pod.group
