"""Which pods of a node must go for a pod to fit there: as few and as unimportant as can be.

All pods that may go are lifted off the node; if the pod fits then, they are put back one by one,
the most important first, and those that do not fit beside it any more are the victims. Source of
semantics: `SelectVictimsOnNode` and `pickOneNodeForPreemption` of kube-scheduler 1.36.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    candidates = rules.losses.in_order(candidates)
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
    victims = rules.losses.in_order(victims)
    return VictimPlan(row, tuple(victims), violations, rules.losses.cost(victims, violations))


def _attempts(
    evaluation: Evaluation, candidates: list[Record], rules: VictimRules
) -> Iterator[list[Record]]:
    """Return, for demands of GPUs, which pods to lift besides trying all by importance.

    A slice needs room on one GPU and whole GPUs must be free ones, so what counts is which GPUs are
    emptied: in turn only the pods on one GPU are lifted. For several, all are, and those put back
    first that lose most per GPU, or that hold the dearest GPUs.
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
    dear = {slot: rules.losses.cost(held, 0) for slot, held in by_slot.items()}
    yield rules.losses.in_order(candidates, per_gpu=True)
    nothing: Cost = (0.0,)
    yield sorted(
        candidates,
        key=lambda r: max((dear[b.slot] for b in r.bookings), default=nothing),
        reverse=True,
    )
