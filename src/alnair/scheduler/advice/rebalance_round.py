"""One round of rebalancing: whether a few moves let somebody start who waits, and which.

It asks the planner of `alnair.scheduler.advice.rebalance`, and adds what keeps a loop small: nobody
is moved for GPUs that nobody waits for, nor for somebody less important, nor twice in a while, nor
back; and each plan is tried to its end: who waits must start by it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from alnair.model import durations
from alnair.model.gpu_words import in_words
from alnair.model.plurals import counted
from alnair.model.rebalancing import PlannedMove, RebalanceBounds, RebalancePlan, undone
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.advice.rebalance import Move, Rebalance
from alnair.scheduler.advice.refusals import judge
from alnair.scheduler.engine.view import View
from alnair.scheduler.gangs.gangs import in_turn
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.nodes.columns import Mask

#: Units, the first of the queue, that a round tries to start, and those that it tries to help; ways
#: to spread the GPUs of one over nodes; and placements that are tried for each.
_TRIED: Final = 64
_UNITS: Final = 4
_SHAPES: Final = 3
_EFFORT: Final = 1_000


class Declined(msgspec.Struct, frozen=True):
    """Why nothing is moved for a unit.

    Attributes:
        unit: What people call it.
        reason: no-plan, helped-before, undoes, little-gain or no-start.
        message: For people.
    """

    unit: str
    reason: str
    message: str


class Round(msgspec.Struct, frozen=True):
    """What a round has found: a plan, or none; and who was declined."""

    plan: RebalancePlan | None = None
    declined: tuple[Declined, ...] = ()


def rebalance_round(
    view: View, bounds: RebalanceBounds, past: Sequence[RebalancePlan], now: float
) -> Round:
    """Return the moves for the first unit of the queue that they would help.

    Args:
        view: of an engine between two steps, such as one that only follows.
        bounds: of the moves.
        past: earlier plans.
        now: seconds since the epoch.
    """
    declined: list[Declined] = []
    in_vain: set[_Alike] = set()
    for unit in _waiting(view, bounds, now):
        found = _Helping(view, bounds, past, now, unit).plan(in_vain)
        if isinstance(found, RebalancePlan):
            return Round(found, tuple(declined))
        declined.append(found)
    return Round(declined=tuple(declined))


def _waiting(view: View, bounds: RebalanceBounds, now: float) -> Iterator[Unit]:
    """Return units that ask for GPUs or slices, have waited, and would not start as things are."""
    waiting = [unit for unit in view.units() if unit.pods and _counts(view, unit, bounds, now)]
    waiting.sort(key=lambda unit: (unit.sort_by_age, unit.order))
    looked = 0
    for unit in waiting[:_TRIED]:
        if looked == _UNITS:
            return
        if not _starts(view, unit, (), now):
            looked += 1
            yield unit


def _counts(view: View, unit: Unit, bounds: RebalanceBounds, now: float) -> bool:
    records = in_turn(unit.pods.values())
    if not any(map(_gpus, records)):
        return False
    if any(view.nominated_node(record) for record in records):
        return False  # others are leaving for it already
    state = view.gang_of(records[0])
    if state is not None and (len(records) < state.lacking() or not state.lacking()):
        # Its pods are not all made; or it runs, and how many more it gets is not for us to say.
        return False
    return now - max(record.pod.created for record in records) >= bounds.every


def _gpus(record: Record) -> int:
    """Return how many GPUs must be free for a pod: its own, and one on which its slices lie."""
    asked = record.pod.spec.gpu
    return 0 if asked is None else asked.whole + bool(asked.memory_mib or asked.compute)


def _needed(view: View, unit: Unit) -> list[Record]:
    """Return the pods that must start together for the unit to start."""
    records = in_turn(unit.pods.values())
    state = view.gang_of(records[0])
    return records[: max(1, state.lacking()) if state else 1]


def _starts(view: View, unit: Unit, moves: Sequence[Move], now: float) -> bool:
    """Return whether a unit is placed once these pods are where they shall go."""
    waiting, needed = in_turn(unit.pods.values()), len(_needed(view, unit))
    with view.experiment(now) as experiment, experiment.attempt() as (statement, lifted):
        experiment.hold_for(waiting, waiting)
        leaving = [view.pods[move.uid] for move in moves]
        for record in leaving:
            lifted.lift(record)
        for record, move in zip(leaving, moves, strict=True):
            profile = view.profiles[record.pod.scheduler]
            if not statement.place_on(record.replacement(), profile, move.target):
                return False
        copies = []
        for record in waiting:
            copy = record.replacement()
            copy.group = record.group
            copies.append(copy)
        placed = experiment.place_unit(unit, copies, needed)
        for record in reversed(placed):
            experiment.take_back(record)
        return len(placed) >= needed


#: What a search goes by: a class of pods, whom it may move, GPUs on a node, and nodes.
_Alike = tuple[tuple[str, PodSpec], int, int, int]


class _Helping:
    """Looks for moves that let one unit start."""

    def __init__(
        self,
        view: View,
        bounds: RebalanceBounds,
        past: Sequence[RebalancePlan],
        now: float,
        unit: Unit,
    ) -> None:
        self._view = view
        self._bounds = bounds
        self._past = past
        self._now = now
        self._unit = unit
        self._needed = _needed(view, unit)
        #: Those that need room; a gang's launcher may need none.
        self._asking = [record for record in self._needed if _gpus(record)]
        self._gpus = [_gpus(record) for record in self._asking]
        self._priority = min(record.pod.priority for record in self._needed)

    def plan(self, in_vain: set["_Alike"]) -> RebalancePlan | Declined:
        """Return the plan that moves the fewest pods, or why there is none.

        Args:
            in_vain: what was looked for in this round without any node being found; grows.
        """
        for plan in self._past:
            since = self._now - plan.at
            if plan.unit == self._unit.key and since < self._bounds.cool_down:
                text = f"pods were moved for it {durations.span(since)} ago"
                return self._declined("helped-before", text)
        problem = self._declined("no-plan", "no node can be freed for it")
        if not self._asking:
            return problem
        planner = Rebalance(self._view, self._stays, _EFFORT)
        suits, best = self._suits(), None
        for count, nodes in self._shapes():
            alike = (self._asking[0].key, self._priority, count, nodes)
            if alike in in_vain:
                continue
            found = planner.free_gpus(count, self._bounds.moves, nodes=nodes, suits=suits)
            if found.problem:
                in_vain.add(alike)
                problem = self._declined("no-plan", found.problem)
            elif found.moves and (best is None or len(found.moves) < len(best.moves)):
                wrong = self._wrong(found.moves)
                if wrong is None:
                    best = found
                else:
                    problem = wrong
        if best is None:
            return problem
        waits = self._needed[0].pod
        return RebalancePlan(
            unit=self._unit.key,
            name=self._unit.name,
            pod=(waits.namespace, waits.name, waits.uid),
            gpus=sum(self._gpus),
            at=self._now,
            nodes=best.nodes,
            moves=tuple(map(self._planned, best.moves)),
            asks=in_words(record.pod.spec.gpu for record in self._asking),
        )

    def _shapes(self) -> list[tuple[int, int]]:
        """Return GPUs to be free on each node, and nodes: few nodes, a pod on each, and between."""
        each, pods = max(self._gpus), len(self._gpus)
        largest = max((len(gpus) for gpus in self._view.cluster.devices.gpus), default=0)
        most = min(largest // each, pods)
        numbers = sorted({most, 1, -(-most // 2)}, reverse=True)[:_SHAPES] if most else []
        return [(each * number, -(-pods // number)) for number in numbers]

    def _suits(self) -> Mask:
        """Return the rows that take such a pod, or would if others left."""
        record, cluster = self._asking[0], self._view.cluster
        suits = cluster.columns.alive[: cluster.columns.n].copy()
        for judged in judge(record.spec, self._view.profiles[record.pod.scheduler], cluster):
            for reason, rows in judged.reasons:
                if reason.unresolvable:
                    suits &= ~rows
        return suits

    def _stays(self, record: Record) -> str:
        """Return why a pod is not moved by a loop; empty if it may be."""
        if record.pod.priority > self._priority:
            return "it is more important than what waits"
        state = self._view.gang_of(record)
        # A job's workers move together, and so does their cool-down.
        together = state.placed() if state is not None and state.bound_together else [record]
        newest = max(one.pod.bound_at or one.pod.created for one in together)
        if self._now - newest < self._bounds.cool_down:
            return f"it came to its node {durations.span(self._now - newest)} ago"
        return ""

    def _wrong(self, moves: Sequence[Move]) -> Declined | None:
        """Return why these moves are not worth it; None if they are."""
        moved, gained = sum(self._held(move) for move in moves), self._gained()
        if gained < self._bounds.gain * moved:
            text = f"{_amount(gained)} would start for {moved:.3g} that move"
            return self._declined("little-gain", text)
        if text := undone([self._planned(move) for move in moves], self._past):
            return self._declined("undoes", text)
        if not _starts(self._view, self._unit, moves, self._now):
            return self._declined("no-start", "it would not start on the nodes that can be freed")
        return None

    def _gained(self) -> float:
        """Return how many GPUs who waits would hold, a slice as its part of the largest one."""
        gpus = (gpu for row in self._view.cluster.devices.gpus for gpu in row)
        memory = max((gpu.memory_mib for gpu in gpus), default=0) or 1
        gained = 0.0
        for record in self._asking:
            asked = record.pod.spec.gpu
            if asked is not None:
                part = max(asked.memory_mib / memory, asked.compute / 100)
                gained += asked.whole + min(1.0, part)
        return gained

    def _held(self, move: Move) -> float:
        """Return how many GPUs a pod holds, a slice as its part of the memory."""
        record = self._view.pods[move.uid]
        gpus = self._view.cluster.devices.gpus[record.row]
        return sum(
            1.0 if one.whole else one.memory_mib / max(1, gpus[one.slot].memory_mib)
            for one in record.bookings
        )

    def _planned(self, move: Move) -> PlannedMove:
        record = self._view.pods[move.uid]
        return PlannedMove(
            namespace=move.namespace,
            name=move.name,
            uid=move.uid,
            kind=_kind(record.pod),
            source=move.source,
            target=move.target,
            gang=f"{move.namespace}/{record.group}" if record.group else "",
        )

    def _declined(self, reason: str, message: str) -> Declined:
        return Declined(self._unit.name, reason, message)


def _amount(gpus: float) -> str:
    return counted(int(gpus), "GPU") if gpus.is_integer() else f"{gpus:.3g} GPUs"


def _kind(pod: Pod) -> str:
    """Return what a pod's replacements have in common with it."""
    if pod.controller is not None:
        return "/".join(pod.controller)
    return pod.name.rpartition("-")[0] or pod.name
