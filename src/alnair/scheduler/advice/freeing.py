"""Freeing whole GPUs on nodes by moving as few pods as can be: which pods, where to, in what order.

Moving a pod means to evict it, so that its replacement goes elsewhere. Nodes are freed one after
another first, those that take the fewest moves before others. For fewer moves than that takes, the
search deepens by their number: it tries every choice of nodes, and of pods on them that hold the
GPUs; first without, then with others moved on to make room. So the plan found has the fewest moves,
unless the effort allowed was spent before. It is tried on the books and leaves them as they were.
What moves is checked again one pod at a time, in the order of the plan.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import comb
from typing import Final

import msgspec
import numpy as np

from alnair.model import names
from alnair.model.gpu_demand import whole_gpus
from alnair.model.workload import Pod, PodSpec, Toleration
from alnair.scheduler.engine.experiment import Experiment
from alnair.scheduler.engine.view import View
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.disruption_budgets import budgets, split
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Mask
from alnair.scheduler.state.without_pods import WithoutPods

#: Placements that one search may try; in a cluster of 1,000 nodes some 10,000 are tried a second.
EFFORT: Final = 8_000
#: Of these, for one choice of nodes and of the pods that leave them.
_EACH: Final = 600
#: Ways to choose the GPUs of one node that are looked at, and sets of pods that are kept of them.
_WAYS: Final = 3000
_SETS: Final = 24
#: Targets of a pod, and rows on which others are moved on for it, in clusters of more nodes.
_FEW: Final = 64
#: Pods of one row that are moved on for another, at most.
_ASIDE: Final = 3
#: Stands for what the freed GPUs are for; it fits wherever they are.
_GUEST: Final = "alnair-rebalance"


class Step(msgspec.Struct, frozen=True):
    """A pod that moves to a row and gets these GPUs there.

    Attributes:
        own: the scheduler would choose the row by itself, while the pod's old node and the freed
            ones take no pods, but those that a move goes to.
    """

    record: Record
    source: int
    target: int
    bookings: tuple[Booking, ...]
    own: bool = True


class FreeingPlan(msgspec.Struct, frozen=True):
    """The rows that have the GPUs free in the end, and the moves in their order."""

    rows: tuple[int, ...]
    steps: tuple[Step, ...]


class _Choice(msgspec.Struct, frozen=True):
    """One way to free a row: these pods leave it."""

    row: int
    leaving: tuple[Record, ...]

    @property
    def cost(self) -> tuple[float, ...]:
        return (len(self.leaving), sum(size(r)[0] for r in self.leaving))


class Freeing:
    """A search for one plan.

    Args:
        view: of an engine between two steps.
        experiment: in which moves are tried.
        movable: whether a pod may be moved.
        count: of whole GPUs to be free on a node.
        spare: pods may move to what a freed node has beyond these; else it takes none.
        effort: placements that may be tried.

    Attributes:
        spent: the effort was spent before all was tried: there may be a plan, or a shorter one.
    """

    def __init__(
        self,
        view: View,
        experiment: Experiment,
        movable: Callable[[Record], bool],
        count: int,
        *,
        spare: bool = False,
        effort: int = EFFORT,
    ) -> None:
        self.spent = False
        self._spare = spare
        self._effort = effort
        self._view = view
        self._cluster = view.cluster
        self._experiment = experiment
        self._profiles = view.profiles
        self._movable = movable
        self._count = count
        self._guest_profile = _guest_profile(view)
        self._budgets = budgets(view.cluster.objects)
        #: Placements that may still be tried, and where the present choice of nodes must stop.
        self._left = effort
        self._floor = 0
        #: Of the choices in their order: the moves that the first so many take.
        self._sums: list[int] = []
        #: Rows that take no moved pods, and the pods that move, while places are looked for.
        self._closed: Mask = np.zeros(0, bool)
        self._moving: set[str] = set()

    def plan(self, rows: Sequence[int], nodes: int, most: int) -> FreeingPlan | None:
        """Return the plan with the fewest moves that frees so many of the rows.

        Args:
            rows: that may be freed.
            nodes: how many of them.
            most: pods that may be moved.
        """
        choices = sorted(
            (
                _Choice(row, leaving)
                for row in rows
                for leaving in self._ways(row)
                if len(leaving) <= most
            ),
            key=lambda c: (c.cost, c.row),
        )
        if len(choices) < nodes:
            return None
        self._sums = [0, *itertools.accumulate(len(choice.leaving) for choice in choices)]
        best = self._greedy(choices, nodes, most)
        for aside in (False, True):
            fewer = range(self._sums[nodes] + aside, len(best.steps) if best else most + 1)
            best = self._search(choices, nodes, fewer, aside=aside) or best
        return best

    def _greedy(self, choices: Sequence[_Choice], nodes: int, most: int) -> FreeingPlan | None:
        """Return a plan that takes one choice after another, if it can be had with those before."""
        self._closed = np.zeros(self._cluster.columns.n, bool)
        self._moving = set()
        rows: list[int] = []
        steps: list[Step] = []
        with self._experiment.attempt() as (statement, trial):
            for choice in choices:
                if len(rows) == nodes or len(steps) + len(choice.leaving) > most:
                    break
                if self._left < self._effort // 2:
                    break
                if choice.row in rows or any(step.target == choice.row for step in steps):
                    continue
                if self._take(choice, len(rows), statement, trial, steps):
                    rows.append(choice.row)
        found = self._in_order(steps, rows) if len(rows) == nodes else None
        return FreeingPlan(tuple(rows), tuple(found)) if found is not None else None

    def _take(
        self,
        choice: _Choice,
        number: int,
        statement: Statement,
        trial: WithoutPods,
        steps: list[Step],
    ) -> bool:
        """Free a row and keep it so; returns whether that can be."""
        self._floor = max(0, self._left - _EACH)
        mark, before = len(statement.placed), len(steps)
        sources = {record.pod.uid: choice.row for record in choice.leaving}
        for record in choice.leaving:
            trial.lift(record)
        self._closed[choice.row] = not self._spare
        guest = Record(_guest(self._count, number))
        todo = sorted(choice.leaving, key=size, reverse=True)
        if statement.place_on(guest, self._guest_profile, self._name(choice.row)) and self._place(
            todo, 0, statement, trial, sources, steps
        ):
            return True
        del steps[before:]
        statement.rollback(mark)
        for record in reversed(choice.leaving):
            trial.put_back(record)
        self._closed[choice.row] = False
        return False

    def _search(
        self, choices: Sequence[_Choice], nodes: int, numbers: range, *, aside: bool
    ) -> FreeingPlan | None:
        """Return the first plan with so many moves, with others moved aside or without."""
        alone: dict[_Pods, bool] = {}

        def usable(choice: _Choice) -> bool:
            return aside or nodes == 1 or self._goes(choice, alone)

        for moves in numbers:
            for chosen in self._combinations(choices, nodes, moves, usable):
                self._left -= len(chosen)
                spare = moves - sum(len(c.leaving) for c in chosen)
                if aside == bool(spare) and (steps := self._places(chosen, spare)) is not None:
                    return FreeingPlan(tuple(c.row for c in chosen), tuple(steps))
            if self._left <= 0:
                self.spent = True
                break
        return None

    def _ways(self, row: int) -> list[tuple[Record, ...]]:
        """Return the smallest sets of pods whose leaving frees enough GPUs of the row."""
        here = self._view.on_row(row)
        need = self._count - int(self._cluster.devices.whole_free[row])
        if need <= 0:
            return [()]
        holders: dict[int, set[str]] = {}
        for uid, record in here.items():
            for booking in record.bookings:
                holders.setdefault(booking.slot, set()).add(uid)
        may = {uid: self._movable(here[uid]) for uids in holders.values() for uid in uids}
        gpus = self._cluster.devices.gpus[row]
        slots = [
            slot
            for slot, uids in holders.items()
            # One that is unhealthy is not free when its pods are gone.
            if not gpus[slot].problem and all(may[uid] for uid in uids)
        ]
        slots.sort(key=lambda slot: (len(holders[slot]), slot))
        while len(slots) > need and comb(len(slots), need) > _WAYS:
            slots.pop()
        found: list[frozenset[str]] = []
        ways = {
            frozenset[str]().union(*(holders[slot] for slot in chosen))
            for chosen in itertools.combinations(slots, need)
        }
        for way in sorted(ways, key=lambda w: (len(w), sorted(w))):
            if not any(smaller < way for smaller in found):
                found.append(way)
        return [tuple(here[uid] for uid in sorted(way)) for way in found[:_SETS]]

    def _combinations(
        self,
        choices: Sequence[_Choice],
        nodes: int,
        moves: int,
        usable: Callable[[_Choice], bool],
        begin: int = 0,
        taken: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[_Choice, ...]]:
        """Return choices of so many different rows which take no more than so many moves."""
        if not nodes:
            yield ()
            return
        for at in range(begin, len(choices) - nodes + 1):
            # Choices are sorted: no later ones take fewer moves than the next ones.
            if self._left <= 0 or self._sums[at + nodes] - self._sums[at] > moves:
                return
            choice = choices[at]
            if choice.row in taken or not usable(choice):
                continue
            rest = moves - len(choice.leaving)
            rows = taken | {choice.row}
            for others in self._combinations(choices, nodes - 1, rest, usable, at + 1, rows):
                yield (choice, *others)

    def _goes(self, choice: _Choice, alone: "dict[_Pods, bool]") -> bool:
        """Return whether a choice can be had if it is the only one; together it is no easier."""
        key = (choice.row, tuple(r.pod.uid for r in choice.leaving))
        if key not in alone:
            alone[key] = self._places((choice,), 0) is not None
        return alone[key]

    # --- places -----------------------------------------------------------------------------------

    def _places(self, chosen: Sequence[_Choice], aside: int) -> list[Step] | None:
        """Return where all pods go that leave, with up to so many others moved on for them."""
        leaving = [record for choice in chosen for record in choice.leaving]
        self._floor = max(0, self._left - _EACH)
        if split(leaving, self._budgets)[0]:
            return None
        freed = [choice.row for choice in chosen]
        self._closed = np.zeros(self._cluster.columns.n, bool)
        if not self._spare:
            self._closed[freed] = True
        self._moving = {record.pod.uid for record in leaving}
        steps: list[Step] = []
        sources = {record.pod.uid: record.row for record in leaving}
        with self._experiment.attempt() as (statement, trial):
            for record in leaving:
                trial.lift(record)
            guests = [
                statement.place_on(
                    Record(_guest(self._count, number)),
                    self._guest_profile,
                    self._name(choice.row),
                )
                for number, choice in enumerate(chosen)
            ]
            todo = sorted(leaving, key=size, reverse=True)
            found = all(guests) and self._place(todo, aside, statement, trial, sources, steps)
        return self._in_order(steps, freed) if found else None

    def _place(
        self,
        todo: list[Record],
        aside: int,
        statement: Statement,
        trial: WithoutPods,
        sources: dict[str, int],
        steps: list[Step],
    ) -> bool:
        """Find places for all of `todo`; on success they are booked and in `steps`."""
        if not todo:
            return not split([step.record for step in steps], self._budgets)[0]
        record, rest = todo[0], todo[1:]
        profile = self._profiles[record.pod.scheduler]
        again = record.replacement()
        mark = len(statement.placed)
        for row in self._targets(record, sources[record.pod.uid]):
            if not self._try(statement, again, profile, row):
                if self._left <= self._floor:
                    return False
                continue
            steps.append(Step(record, sources[record.pod.uid], row, again.bookings))
            if self._place(rest, aside, statement, trial, sources, steps):
                return True
            steps.pop()
            statement.rollback(mark)
        for others in self._others(record, sources[record.pod.uid], aside):
            row = others[0].row
            for other in others:
                trial.lift(other)
            if self._try(statement, again, profile, row):
                steps.append(Step(record, sources[record.pod.uid], row, again.bookings))
                moved = {other.pod.uid: row for other in others}
                self._moving |= moved.keys()
                further = sorted((*rest, *others), key=size, reverse=True)
                left = aside - len(others)
                if self._place(further, left, statement, trial, {**sources, **moved}, steps):
                    return True
                self._moving -= moved.keys()
                steps.pop()
                statement.rollback(mark)
            for other in reversed(others):
                trial.put_back(other)
            if self._left <= self._floor:
                return False
        return False

    def _try(self, statement: Statement, record: Record, profile: Profile, row: int) -> bool:
        self._left -= 1
        return self._left > self._floor and statement.place_on(record, profile, self._name(row))

    def _targets(self, record: Record, source: int) -> list[int]:
        """Return the rows that take the pod: the scheduler's own choice, then the fullest first."""
        profile = self._profiles[record.pod.scheduler]
        evaluation = self._experiment.evaluate(record.spec, profile)
        if evaluation.refusal is not None:
            return []
        allowed = ~self._closed
        allowed[source] = False
        rows = np.flatnonzero((evaluation.rank >= 0) & allowed)
        if not rows.size:
            return []
        free = self._cluster.devices.whole_free[rows]
        first = int(rows[evaluation.rank[rows].argmax()])
        order = rows[np.lexsort((-evaluation.rank[rows], free))].tolist()
        if self._cluster.columns.n > _FEW:
            order = order[:_FEW]
        return [first, *(row for row in order if row != first)]

    def _others(self, record: Record, source: int, aside: int) -> Iterator[tuple[Record, ...]]:
        """Return pods of one row each that could be moved on to make room for a pod."""
        if not aside:
            return
        columns, devices = self._cluster.columns, self._cluster.devices
        rows = [row for row in range(columns.n) if not self._closed[row] and row != source]
        if columns.n > _FEW:
            rows.sort(key=lambda row: -devices.whole_free[row])
            rows = rows[:_FEW]
        movable = {
            row: [
                r
                for r in self._view.on_row(row).values()
                if r.pod.uid not in self._moving and r.key != record.key and self._may(r)
            ]
            for row in rows
        }
        for number in range(1, min(aside, _ASIDE) + 1):
            for row in rows:
                yield from itertools.combinations(movable[row], number)

    def _may(self, record: Record) -> bool:
        # Pods booked by the search itself are not in the engine's records.
        return self._view.pods.get(record.pod.uid) is record and self._movable(record)

    # --- order ------------------------------------------------------------------------------------

    def _in_order(self, steps: Sequence[Step], freed: Sequence[int]) -> list[Step] | None:
        """Return the steps one after another as they can be done; None if some wait on each other.

        Each pod gets the GPUs that the scheduler would choose at that moment.
        """
        targets = {step.target for step in steps}
        cordoned = np.zeros(self._cluster.columns.n, bool)
        cordoned[[row for row in freed if row not in targets]] = True
        left, done = list(steps), list[Step]()
        with self._experiment.attempt() as (statement, trial):
            while left:
                for step in left:
                    trial.lift(step.record)
                    if (taken := self._taken(step, statement, ~cordoned)) is not None:
                        done.append(taken)
                        left.remove(step)
                        break
                    trial.put_back(step.record)
                else:
                    break
        return None if left else done

    def _taken(self, step: Step, statement: Statement, allowed: Mask) -> Step | None:
        profile = self._profiles[step.record.pod.scheduler]
        allowed = allowed.copy()
        allowed[step.source] = False
        best = self._experiment.evaluate(step.record.spec, profile).best(allowed)
        again = step.record.replacement()
        if not statement.place_on(again, profile, self._name(step.target)):
            return None
        return msgspec.structs.replace(step, bookings=again.bookings, own=best == step.target)

    def _name(self, row: int) -> str:
        node = self._cluster.columns.nodes[row]
        return node.name if node else ""


#: A row, and the uids of the pods that leave it.
_Pods = tuple[int, tuple[str, ...]]


def size(record: Record) -> tuple[float, ...]:
    """Return the key that puts pods with more GPUs after others: these have the fewest places."""
    demand = record.pod.spec.gpu
    gpus = (demand.whole, demand.memory_mib) if demand else (0, 0)
    return (*gpus, record.pod.spec.scored_cpu)


def free_already(view: View, rows: Iterable[int], count: int) -> list[int]:
    """Return the rows that have so many whole GPUs free."""
    evaluation = view.evaluate(_guest(count, 0).spec, _guest_profile(view))
    if evaluation.refusal is not None:
        return []
    return [row for row in rows if evaluation.feasible(row)]


def _guest_profile(view: View) -> Profile:
    return view.profiles.get(names.SCHEDULER) or next(iter(view.profiles.values()))


def _guest(count: int, number: int) -> Pod:
    demand = whole_gpus(count)
    spec = PodSpec(
        requests=((names.GPU, count),), tolerations=(Toleration(operator="Exists"),), gpu=demand
    )
    uid = f"{_GUEST}-{number}"
    return Pod(uid, "", uid, spec, names.SCHEDULER, 0.0)
