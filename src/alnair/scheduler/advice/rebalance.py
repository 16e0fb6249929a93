"""Rebalancing: which pods to move, and where to, so that a node has whole GPUs free, or is empty.

A plan is pure: it is tried on the books of an engine that knows the cluster and does nothing. Only
pods that will be replaced and may be disturbed are moved, each to a node where the scheduler's own
placement puts its replacement, and never more of them than asked.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from alnair.model import names
from alnair.model.plurals import counted
from alnair.scheduler.advice.freeing import EFFORT, Freeing, Step, free_already, size
from alnair.scheduler.engine.view import View
from alnair.scheduler.state.accounts import Record, State
from alnair.scheduler.state.disruption_budgets import budgets, split
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Mask


class Move(msgspec.Struct, frozen=True):
    """A pod that is evicted from one node, so that its replacement goes to another.

    Attributes:
        source_gpus, target_gpus: indices of its GPUs on these nodes.
        own: the scheduler chooses the target by itself; else it must be led there, by a node
            selector or by cordoning others.
    """

    namespace: str
    name: str
    uid: str
    source: str
    target: str
    source_gpus: tuple[int, ...] = ()
    target_gpus: tuple[int, ...] = ()
    own: bool = True


class Stay(msgspec.Struct, frozen=True):
    """A pod that cannot be moved, and why."""

    namespace: str
    name: str
    why: str


class RebalanceOutcome(msgspec.Struct, frozen=True):
    """What can be done.

    Attributes:
        node: the first that will have the GPUs free, or be empty; empty text if none can.
        moves: in their order; none if nothing needs to be moved.
        problem: why it cannot be done; empty if it can.
        staying: pods that stand in the way on the nodes looked at.
        nodes: all that will have the GPUs free.
    """

    node: str
    moves: tuple[Move, ...] = ()
    problem: str = ""
    staying: tuple[Stay, ...] = ()
    nodes: tuple[str, ...] = ()


class Rebalance:
    """Makes plans on the books of an engine, and leaves them as they were.

    Args:
        view: of an engine that has learned the cluster.
        also: says why a further pod must stay where it is; empty if it may be moved.
        effort: placements that one search may try.
    """

    def __init__(
        self, view: View, also: Callable[[Record], str] = lambda _: "", effort: int = EFFORT
    ) -> None:
        self._view = view
        self._cluster = view.cluster
        self._also = also
        self._effort = effort

    def free_gpus(
        self,
        count: int,
        most: int,
        node: str = "",
        nodes: int = 1,
        *,
        spare: bool = False,
        suits: Mask | None = None,
    ) -> RebalanceOutcome:
        """Return how so many nodes, or this one, get so many whole GPUs free each.

        Args:
            count: of free whole GPUs wanted on a node.
            most: pods that may be moved.
            node: the only one to look at, empty for any that takes pods.
            nodes: how many are wanted.
            spare: pods may move to what a freed node has beyond these GPUs, so not all freed nodes
                can be cordoned meanwhile.
            suits: the rows that may be freed if no node is named; None: any that takes pods.
        """
        columns = self._cluster.columns
        if node and node not in columns.row_of:
            return RebalanceOutcome("", problem=f"node {node} does not exist")
        takes = columns.alive[: columns.n] & ~columns.unschedulable[: columns.n]
        if suits is not None:
            takes &= suits
        rows = [columns.row_of[node]] if node else np.flatnonzero(takes).tolist()
        free = free_already(self._view, rows, count)[:nodes]
        if len(free) == nodes:
            return self._outcome(free, ())
        with self._view.experiment() as experiment:
            search = Freeing(
                self._view,
                experiment,
                lambda r: not self._why_not(r),
                count,
                spare=spare,
                effort=self._effort,
            )
            plan = search.plan(rows, nodes, most)
        if plan is not None:
            return self._outcome(plan.rows, plan.steps)
        where = f"on {nodes} nodes" if nodes > 1 else f"on node {node}" if node else "on any node"
        problem = (
            f"{count} whole GPUs cannot be freed {where} by moving at most {counted(most, 'pod')}"
        )
        if search.spent:
            problem += ", as far as was looked"
        holding = [r for row in rows for r in self._view.on_row(row).values() if r.bookings]
        return RebalanceOutcome("", problem=problem, staying=self._staying(holding))

    def empty(self, node: str, most: int) -> RebalanceOutcome:
        """Return how a node gets rid of its pods, but those of DaemonSets and the node itself.

        Args:
            node: its name.
            most: pods that may be moved.
        """
        row = self._cluster.columns.row_of.get(node)
        if row is None:
            return RebalanceOutcome("", problem=f"node {node} does not exist")
        here = [r for r in self._view.on_row(row).values() if not r.pod.daemon]
        staying = self._staying(here)
        if staying:
            problem = f"{counted(len(staying), 'pod')} of node {node} cannot be moved"
            return RebalanceOutcome("", problem=problem, staying=staying)
        if len(here) > most:
            return RebalanceOutcome(
                "", problem=f"node {node} has {counted(len(here), 'pod')} to move, more than {most}"
            )
        moves = self._moves(here, row)
        if moves is None:
            return RebalanceOutcome(
                "", problem=f"the pods of node {node} do not all fit on other nodes"
            )
        return RebalanceOutcome(node, moves, nodes=(node,))

    def _outcome(self, rows: Sequence[int], steps: Iterable[Step]) -> RebalanceOutcome:
        nodes = tuple(_name(self._view, row) for row in rows)
        moves = tuple(self._move(s.record, s.source, s.target, s.bookings, s.own) for s in steps)
        return RebalanceOutcome(nodes[0], moves, nodes=nodes)

    def _move(
        self, record: Record, source: int, target: int, held: tuple[Booking, ...], own: bool
    ) -> Move:
        return Move(
            record.pod.namespace,
            record.pod.name,
            record.pod.uid,
            _name(self._view, source),
            _name(self._view, target),
            self._indices(source, record.bookings),
            self._indices(target, held),
            own,
        )

    def _indices(self, row: int, bookings: Iterable[Booking]) -> tuple[int, ...]:
        gpus = self._cluster.devices.gpus[row]
        return tuple(sorted({gpus[b.slot].index for b in bookings}))

    def _staying(self, records: Iterable[Record]) -> tuple[Stay, ...]:
        return tuple(
            Stay(record.pod.namespace, record.pod.name, why)
            for record in records
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
        if pod.scheduler not in self._view.profiles:
            return f"its scheduler is {pod.scheduler}"
        state = self._view.gang_of(record)
        if state is not None and state.bound_together:
            # One pod is moved at a time, and the next one when its replacement has a node.
            if not state.elastic:
                return "it is a member of a gang"
            if len(state.placed()) <= state.min_member:
                return "its elastic gang has no member to spare"
        if split([record], budgets(self._cluster.objects))[0]:
            return "its disruption budget allows no eviction now"
        return self._also(record)

    def _moves(self, leaving: Sequence[Record], row: int) -> tuple[Move, ...] | None:
        """Place replacements off the row; None if they do not all fit.

        The largest go first: they have the fewest places.
        """
        if split(leaving, budgets(self._cluster.objects))[0]:
            return None
        order = sorted(leaving, key=size, reverse=True)
        elsewhere: Mask = np.ones(self._cluster.columns.n, bool)
        elsewhere[row] = False
        targets: list[tuple[int, tuple[Booking, ...]]] = []
        with self._view.experiment() as experiment, experiment.attempt() as (statement, lifted):
            for record in leaving:
                lifted.lift(record)
            for record in order:
                again = record.replacement()
                profile = self._view.profiles[record.pod.scheduler]
                if statement.place(again, profile, elsewhere) is not None:
                    break
                targets.append((again.row, again.bookings))
        if len(targets) < len(order):
            return None
        return tuple(
            self._move(r, row, target, held, own=True)
            for r, (target, held) in zip(order, targets, strict=True)
        )


def _name(view: View, row: int) -> str:
    node = view.cluster.columns.nodes[row]
    return node.name if node else ""
