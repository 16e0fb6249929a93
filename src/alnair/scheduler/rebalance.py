"""Rebalancing: which pods to move, and where to, so that a node has whole GPUs free, or is empty.

A plan is pure: it is tried on the books of an engine that knows the cluster and does nothing. Only
pods that will be replaced and may be disturbed are moved, each to a node where the scheduler's own
placement puts its replacement, and never more of them than asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.model.workload import Pod, PodSpec, Toleration
from alnair.scheduler.accounts import Record, State
from alnair.scheduler.budgets import budgets, split
from alnair.scheduler.columns import Mask
from alnair.scheduler.engine import Engine
from alnair.scheduler.framework import Profile
from alnair.scheduler.statement import Statement
from alnair.scheduler.victims import Plan as Victims
from alnair.scheduler.victims import Rules, plan
from alnair.scheduler.what_if import WhatIf

#: Stands for what the freed GPUs are for; it fits wherever they are.
_GUEST: Final = "alnair-rebalance"


class Move(msgspec.Struct, frozen=True):
    """A pod that is evicted from one node, so that its replacement goes to another."""

    namespace: str
    name: str
    uid: str
    source: str
    target: str


class Stay(msgspec.Struct, frozen=True):
    """A pod that cannot be moved, and why."""

    namespace: str
    name: str
    why: str


class Outcome(msgspec.Struct, frozen=True):
    """What can be done.

    Attributes:
        node: that will have the GPUs free, or be empty; empty text if none can.
        moves: in their order; none if nothing needs to be moved.
        problem: why it cannot be done; empty if it can.
        staying: pods that stand in the way on the node asked for.
    """

    node: str
    moves: tuple[Move, ...] = ()
    problem: str = ""
    staying: tuple[Stay, ...] = ()


class Rebalance:
    """Makes plans on the books of an engine, and leaves them as they were.

    Args:
        engine: that has learned the cluster.
        profiles: of the engine, by scheduler name.
    """

    def __init__(self, engine: Engine, profiles: Mapping[str, Profile]) -> None:
        self._engine = engine
        self._accounts = engine.accounts
        self._profiles = profiles

    def free_gpus(self, count: int, most: int, node: str = "") -> Outcome:
        """Return how some node, or this one, gets so many whole GPUs free.

        Args:
            count: of free whole GPUs wanted on one node.
            most: pods that may be moved.
            node: the only one to look at, empty for any.
        """
        columns = self._accounts.columns
        if node and node not in columns.row_of:
            return Outcome("", problem=f"node {node} does not exist")
        guest = _guest(count)
        profile = self._profiles[names.SCHEDULER]
        evaluation = self._engine.evaluations.of(guest.spec, profile)
        rows = [columns.row_of[node]] if node else list(range(columns.n))
        free = [row for row in rows if evaluation.feasible(row)]
        if free:
            return Outcome(_name(self._engine, free[0]))
        best: tuple[tuple[float, ...], Outcome] | None = None
        hopeful = evaluation.resolvable() if evaluation.refusal is None else np.zeros(0, bool)
        for row in (r for r in rows if r < hopeful.size and hopeful[r]):
            found = plan(self._accounts, evaluation, row, self._rules())
            if not isinstance(found, Victims) or len(found.victims) > most:
                continue
            moves = self._moves(found.victims, row, guest)
            if moves is not None and (best is None or (len(moves), *found.cost) < best[0]):
                best = (len(moves), *found.cost), Outcome(_name(self._engine, row), moves)
        if best is not None:
            return best[1]
        where = f"on node {node}" if node else "on any node"
        problem = f"{count} whole GPUs cannot be freed {where} by moving at most {most} pods"
        return Outcome("", problem=problem, staying=self._staying(rows) if node else ())

    def empty(self, node: str, most: int) -> Outcome:
        """Return how a node gets rid of its pods, but those of DaemonSets and the node itself.

        Args:
            node: its name.
            most: pods that may be moved.
        """
        row = self._accounts.columns.row_of.get(node)
        if row is None:
            return Outcome("", problem=f"node {node} does not exist")
        here = [r for r in self._accounts.on_row.get(row, {}).values() if not r.pod.daemon]
        staying = self._staying([row])
        if staying:
            problem = f"{len(staying)} pods of node {node} cannot be moved"
            return Outcome("", problem=problem, staying=staying)
        if len(here) > most:
            return Outcome(
                "", problem=f"node {node} has {len(here)} pods to move, more than {most}"
            )
        moves = self._moves(here, row, None)
        if moves is None:
            return Outcome("", problem=f"the pods of node {node} do not all fit on other nodes")
        return Outcome(node, moves)

    def _rules(self) -> Rules:
        return Rules(
            rank=lambda record: record.pod.priority,
            eligible=lambda records: [r for r in records if not self._why_not(r)],
            # Those whose budget is used up by others of the plan are put back first.
            budgets=budgets(self._accounts.objects),
            companions=lambda victims: [],
        )

    def _staying(self, rows: Iterable[int]) -> tuple[Stay, ...]:
        return tuple(
            Stay(record.pod.namespace, record.pod.name, why)
            for row in rows
            for record in self._accounts.on_row.get(row, {}).values()
            if not record.pod.daemon and (why := self._why_not(record))
        )

    def _why_not(self, record: Record) -> str:
        """Return why a pod must stay where it is; empty if it may be moved."""
        pod = record.pod
        if record.state is not State.BOUND or pod.deleting:
            return "it is on its way"
        if not pod.owned:
            return "no controller would replace it"
        if not pod.evictable:
            return f"annotation {names.EVICTABLE} is false"
        if pod.scheduler not in self._profiles:
            return f"its scheduler is {pod.scheduler}"
        state = self._engine.members.gang_of(record)
        if state is not None and state.min_member > 1:
            return "it is a member of a gang"
        if split([record], budgets(self._accounts.objects))[0]:
            return "its disruption budget allows no eviction now"
        return ""

    def _moves(
        self, leaving: Sequence[Record], row: int, guest: Pod | None
    ) -> tuple[Move, ...] | None:
        """Place replacements off the row, and the guest on it; None if they do not all fit.

        The largest go first: they have the fewest places.
        """
        if split(leaving, budgets(self._accounts.objects))[0]:
            return None
        order = sorted(leaving, key=_size, reverse=True)
        elsewhere: Mask = np.ones(self._accounts.columns.n, bool)
        elsewhere[row] = False
        source = _name(self._engine, row)
        statement = Statement(self._accounts, self._engine.evaluations, 0.0)
        targets: list[str] = []
        with WhatIf(self._accounts) as trial:
            for record in leaving:
                trial.lift(record)
            fits = guest is None or statement.place_on(
                Record(guest), self._profiles[names.SCHEDULER], source
            )
            for record in order if fits else ():
                again = Record(msgspec.structs.replace(record.pod, node="", assignment=()))
                again.spec = record.spec
                profile = self._profiles[record.pod.scheduler]
                if statement.place(again, profile, elsewhere) is not None:
                    break
                targets.append(again.node)
            statement.rollback()
        if len(targets) < len(order):
            return None
        return tuple(
            Move(r.pod.namespace, r.pod.name, r.pod.uid, source, target)
            for r, target in zip(order, targets, strict=True)
        )


def _guest(count: int) -> Pod:
    demand = gpu_demand([ContainerGpus("main", {names.GPU: count})], {})
    spec = PodSpec(
        requests=((names.GPU, count),), tolerations=(Toleration(operator="Exists"),), gpu=demand
    )
    return Pod(_GUEST, "", _GUEST, spec, names.SCHEDULER, 0.0)


def _name(engine: Engine, row: int) -> str:
    node = engine.accounts.columns.nodes[row]
    return node.name if node else ""


def _size(record: Record) -> tuple[float, ...]:
    demand = record.pod.spec.gpu
    gpus = (demand.whole, demand.memory_mib) if demand else (0, 0)
    return (*gpus, record.pod.spec.scored_cpu)
