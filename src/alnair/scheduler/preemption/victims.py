"""Which pods of a node must go for a pod to fit there: as few and as unimportant as can be.

All pods that may go are lifted off the node; if the pod fits then, they are put back one by one,
the most important first, and those that do not fit beside it any more are the victims. Source of
semantics: `SelectVictimsOnNode` and `pickOneNodeForPreemption` of kube-scheduler 1.36.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from alnair.model.action import PREEMPTED
from alnair.model.disruption import DisruptionBudget
from alnair.model.workload import Pod
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Reason
from alnair.scheduler.state.accounts import Accounts, Record
from alnair.scheduler.state.disruption_budgets import split
from alnair.scheduler.state.without_pods import WithoutPods

NO_VICTIMS: Final = Reason("No preemption victims found for incoming pod", unresolvable=True)
#: Priority that an idle pod counts with: below all others.
IDLE: Final = -(2**31) - 1
#: Added to priorities before they are summed, so that fewer pods are always a smaller sum.
SHIFT: Final = 2**31

Rank = Callable[[Record], int]
Cost = tuple[float, ...]


class VictimPlan(msgspec.Struct, frozen=True):
    """The victims on one row, the most important first; those of broken gangs may be elsewhere."""

    row: int
    victims: tuple[Record, ...]
    violations: int
    #: Smaller is better.
    cost: Cost


class VictimRules(msgspec.Struct, frozen=True):
    """Who may go, and what that breaks."""

    #: Priority that a victim counts with.
    rank: Rank
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


def importance(rank: Rank) -> Callable[[Record], tuple[float, float]]:
    """Return the key that sorts the most important pod first: priority, then running longest."""
    return lambda record: (-rank(record), record.pod.started or math.inf)


def cost(victims: Sequence[Record], violations: int, rank: Rank) -> Cost:
    """Return what decides between nodes.

    Broken budgets, the highest priority, the sum of priorities, the number of pods, and how early
    the first of the highest priority started.
    """
    ranks = [rank(v) for v in victims]
    highest = max(ranks)
    started = (
        v.pod.started or math.inf for v, r in zip(victims, ranks, strict=True) if r == highest
    )
    total = sum(r + SHIFT for r in ranks if r != IDLE)  # an idle pod adds nothing
    return violations, highest, total, len(victims), -min(started)


def plan(
    accounts: Accounts, evaluation: Evaluation, row: int, rules: VictimRules
) -> VictimPlan | list[Reason]:
    """Return the victims on a row, or why no victims would help.

    Args:
        accounts: the books; they are left as they were.
        evaluation: of the preemptor's class, brought up to date.
        row: of a node that refuses the pod now.
        rules: who may go.
    """
    candidates = rules.eligible(accounts.on_row.get(row, {}).values())
    if not candidates:
        return [NO_VICTIMS]
    candidates.sort(key=importance(rules.rank))
    attempts = list(_attempts(evaluation, candidates, rules))  # while they hold their GPUs
    with WithoutPods(accounts, unseen=True) as trial:
        for record in candidates:
            trial.lift(record)
        if not evaluation.accepts(row):
            return evaluation.why_not(row)
        best = _reprieve(trial, evaluation, row, candidates, rules)
        for attempt in attempts:
            trial.undo()
            for record in attempt:
                trial.lift(record)
            if not evaluation.accepts(row):
                continue
            found = _reprieve(trial, evaluation, row, attempt, rules)
            if found.cost < best.cost:
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
    victims.sort(key=importance(rules.rank))
    return VictimPlan(row, tuple(victims), violations, cost(victims, violations, rules.rank))


def _attempts(
    evaluation: Evaluation, candidates: list[Record], rules: VictimRules
) -> Iterator[list[Record]]:
    """Return, for demands of GPUs, which pods to lift besides trying all by importance.

    A slice needs room on one GPU and whole GPUs must be free ones, so what counts is which GPUs are
    emptied: in turn only the pods on one GPU are lifted; then all are, and those put back first
    that hold the dearest GPUs.
    """
    demand = evaluation.spec.gpu
    if demand is None:
        return
    by_slot: dict[int, list[Record]] = {}
    for record in candidates:
        for slot in {b.slot for b in record.bookings}:
            by_slot.setdefault(slot, []).append(record)
    if demand.whole + bool(demand.memory_mib) == 1:
        yield from by_slot.values()
        return
    dear = {slot: cost(held, 0, rules.rank) for slot, held in by_slot.items()}
    nothing: Cost = (0.0,)
    yield sorted(
        candidates,
        key=lambda r: max((dear[b.slot] for b in r.bookings), default=nothing),
        reverse=True,
    )
