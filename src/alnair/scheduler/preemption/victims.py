"""Which pods of a node must go for a pod to fit there: as few and as unimportant as can be.

All pods that may go are lifted off the node; if the pod fits then, they are put back one by one,
the most important first, and those that do not fit beside it any more are the victims. Source of
semantics: `SelectVictimsOnNode` and `pickOneNodeForPreemption` of kube-scheduler 1.36.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from alnair.model.action import PREEMPTED
from alnair.model.disruption import DisruptionBudget
from alnair.model.workload import Pod
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Reason
from alnair.scheduler.preemption.losses import Cost, Losses
from alnair.scheduler.state.accounts import Accounts, Record
from alnair.scheduler.state.disruption_budgets import split
from alnair.scheduler.state.without_pods import WithoutPods

NO_VICTIMS: Final = Reason("No preemption victims found for incoming pod", unresolvable=True)


class VictimPlan(msgspec.Struct, frozen=True):
    """The victims on one row, the most important first; those of broken gangs may be elsewhere."""

    row: int
    victims: tuple[Record, ...]
    violations: int
    #: Smaller is better.
    cost: Cost


class VictimRules(msgspec.Struct, frozen=True):
    """Who may go, and what that breaks."""

    #: What victims cost.
    losses: Losses
    #: Of the pods of one row: those that may go for the preemptor.
    eligible: Callable[[Iterable[Record]], list[Record]]
    budgets: Sequence[DisruptionBudget]
    #: Of victims: the other members of their gangs, which cannot go on without them.
    companions: Callable[[Sequence[Record]], list[Record]]


def is_leaving_for(record: Record, pod: Pod, *, reclaimed: bool = False) -> bool:
    """Return whether a pod is on its way out because one such as this preempted it.

    Args:
        record: the pod that leaves.
        pod: that waits for it.
        reclaimed: it may wait for pods of any priority.
    """
    if reclaimed:
        return record.evicting == PREEMPTED or record.pod.preempted
    if record.evicting == PREEMPTED:
        return record.pod.priority <= pod.priority
    return record.pod.preempted and record.pod.priority < pod.priority


def plan(
    accounts: Accounts,
    evaluation: Evaluation,
    row: int,
    rules: VictimRules,
    least: Cost = (),
    most: Cost | None = None,
) -> VictimPlan | list[Reason] | None:
    """Return the victims on a row, or why no victims would help; None if all are too dear.

    Args:
        accounts: the books; they are left as they were.
        evaluation: of the preemptor's class, brought up to date.
        row: of a node that refuses the pod now.
        rules: who may go.
        least: what victims here are known to cost at least.
        most: only victims that cost less are of use.
    """
    candidates = rules.eligible(accounts.on_row.get(row, {}).values())
    if not candidates:
        return [NO_VICTIMS]
    candidates = rules.losses.in_order(candidates)
    demand = evaluation.spec.gpu
    slots = {r.pod.uid: {b.slot for b in r.bookings} for r in candidates} if demand else {}
    with WithoutPods(accounts, unseen=True) as trial:
        for record in candidates:
            trial.lift(record)
        if not evaluation.accepts(row):
            return evaluation.why_not(row)
        if most is not None and min(map(rules.losses.least, candidates)) >= most:
            return None

        def without(lifted: list[Record]) -> VictimPlan | None:
            trial.undo()
            for record in lifted:
                trial.lift(record)
            if not evaluation.accepts(row):
                return None
            return _reprieve(trial, evaluation, row, lifted, rules)

        if demand and demand.whole + bool(demand.memory_mib) == 1:
            return _for_one_gpu(candidates, slots, rules.losses, without)
        best = _reprieve(trial, evaluation, row, candidates, rules)
        if demand and best.cost > least:
            for order in _orders(candidates, slots, rules.losses):
                found = without(order)
                if found is not None and found.cost < best.cost:
                    best = found
        return best


def _reprieve(
    trial: WithoutPods, evaluation: Evaluation, row: int, order: list[Record], rules: VictimRules
) -> VictimPlan:
    """Put back what can stay of lifted pods, in this order, budget breakers first."""
    breaking, harmless = split(order, rules.budgets)
    victims: list[Record] = []

    def put_back(records: Iterable[Record]) -> None:
        for record in records:
            trial.put_back(record)
            if not evaluation.accepts(row):
                trial.lift(record)
                victims.append(record)

    put_back(breaking)
    violations = len(victims)
    put_back(harmless)
    companions = rules.companions(victims)
    if companions:
        # The rest of a broken gang goes too, and its room on this row may spare others.
        gangs = {(r.pod.namespace, r.group) for r in companions}
        others = [r for r in victims if (r.pod.namespace, r.group) not in gangs]
        for record in companions:
            if record.row == row:
                trial.lift(record)
        gone = [r for r in victims if (r.pod.namespace, r.group) in gangs] + companions
        victims = []
        put_back(others)
        victims += gone
        violations = len(split(victims, rules.budgets)[0])
    victims = rules.losses.in_order(victims)
    return VictimPlan(row, tuple(victims), violations, rules.losses.cost(victims, violations))


def _for_one_gpu(
    candidates: list[Record],
    slots: Mapping[str, set[int]],
    losses: Losses,
    without: Callable[[list[Record]], VictimPlan | None],
) -> VictimPlan | None:
    """Return the cheapest victims if what counts is which GPU is emptied.

    In turn only the pods on one GPU are lifted, or all; those that cannot win are left out.
    """
    by_slot: dict[int, list[Record]] = {}
    for record in candidates:
        for slot in slots[record.pod.uid]:
            by_slot.setdefault(slot, []).append(record)
    # Of equals, all by importance win, then the GPU of the dearest pod.
    bounds = [(min(map(losses.least, held)), i + 1) for i, held in enumerate(by_slot.values())]
    attempts = [candidates, *by_slot.values()]
    best: VictimPlan | None = None
    won: tuple[Cost, int] = ((math.inf,), 0)
    for bound in sorted(bounds):
        if bound < won:
            found = without(attempts[bound[1]])
            if found is not None and (found.cost, bound[1]) < won:
                best, won = found, (found.cost, bound[1])
    affordable = [r for r in candidates if losses.least(r) <= won[0]]
    if best is None or list(best.victims) != affordable:
        found = without(candidates)
        if found is not None and found.cost <= won[0]:
            best = found
    return best


def _orders(
    candidates: list[Record], slots: Mapping[str, set[int]], losses: Losses
) -> Iterator[list[Record]]:
    """Return in which other orders to put pods back where several whole GPUs must be free.

    First those that lose most per GPU, or that hold the dearest GPUs.
    """
    tried = [candidates]
    order = losses.in_order(candidates, per_gpu=True)
    if order not in tried:
        tried.append(order)
        yield order
    by_slot: dict[int, list[Record]] = {}
    for record in candidates:
        for slot in slots[record.pod.uid]:
            by_slot.setdefault(slot, []).append(record)
    dear = {slot: losses.cost(held, 0) for slot, held in by_slot.items()}
    nothing: Cost = (0.0,)

    def dearest(record: Record) -> Cost:
        return max((dear[slot] for slot in slots[record.pod.uid]), default=nothing)

    order = sorted(candidates, key=dearest, reverse=True)
    if order not in tried:
        yield order
