"""Preemption on given rows, told row by row: what victims each would take, or why none would help.

This is kube-scheduler's own search, in its order and to its end;
`alnair.scheduler.preemption.victim_search` finds the best of all rows without trying them all.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from alnair.model.workload import Pod
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Reason
from alnair.scheduler.preemption.victims import VictimPlan, VictimRules, is_leaving_for, plan
from alnair.scheduler.state.accounts import Accounts, Record

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


def ineligible(
    pod: Pod, on_nominated: Iterable[Record], *, hopeless: bool, reclaimed: bool = False
) -> str:
    """Return why a pod may not make others leave now; empty if it may.

    Args:
        pod: that fits nowhere.
        on_nominated: the pods on the node where room is held for it.
        hopeless: no departure would let it go there.
        reclaimed: that room was taken back by quota.
    """
    if not pod.preempts:
        return "not eligible due to preemptionPolicy=Never."
    leaving = (is_leaving_for(record, pod, reclaimed=reclaimed) for record in on_nominated)
    if not hopeless and any(leaving):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def dry_run(
    accounts: Accounts, evaluation: Evaluation, rows: Iterable[int], rules: VictimRules, enough: int
) -> tuple[list[VictimPlan], list[Sequence[Reason]]]:
    """Return candidates, those that break no budget first, and why other tried rows are none.

    Args:
        accounts: the books; they are left as they were.
        evaluation: of the preemptor's class, brought up to date.
        rows: to try.
        rules: who may go.
        enough: so many candidates end the search, once one of them breaks no budget; no more than
            that break one.
    """
    harmless: list[VictimPlan] = []
    breaking: list[VictimPlan] = []
    reasons: list[Sequence[Reason]] = []
    for row in rows:
        found = plan(accounts, evaluation, row, rules)
        if isinstance(found, list):
            reasons.append(found)
        if not isinstance(found, VictimPlan):
            continue
        if not found.violations:
            harmless.append(found)
        elif len(breaking) < enough:
            breaking.append(found)
        if harmless and len(harmless) + len(breaking) >= enough:
            break
    return harmless + breaking, reasons


def no_help(nodes: int, reasons: Sequence[Sequence[Reason]]) -> str:
    """Return kube-scheduler's sentence for a preemption that helps on no node.

    Args:
        nodes: number of nodes in the cluster.
        reasons: per node that was tried, why victims do not help there.
    """
    counts: dict[str, int] = {}
    for texts in reasons:
        for reason in texts:
            counts[reason.text] = counts.get(reason.text, 0) + 1
    if nodes > len(reasons):
        counts[NOT_HELPFUL] = nodes - len(reasons)
    listed = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    return f"0/{nodes} nodes are available: {listed}."
