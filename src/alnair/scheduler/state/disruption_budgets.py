"""Disruption budgets: which of the pods could go without breaking one.

Source of semantics: `filterPodsWithPDBViolation` of kube-scheduler's DefaultPreemption.
"""

from collections.abc import Iterable
from typing import Final

from alnair.model.disruption import DisruptionBudget
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.objects.api_objects import Objects
from alnair.scheduler.state.pods.label_selectors import matches

KIND: Final = "PodDisruptionBudget"


def budgets(objects: Objects) -> list[DisruptionBudget]:
    """Return the budgets that select anything: without requirements one selects no pod."""
    known: Iterable[DisruptionBudget] = objects.of(KIND).values()
    return [b for b in known if b.selector is not None and b.selector.requirements]


def split(
    pods: Iterable[Record], budgets: Iterable[DisruptionBudget]
) -> tuple[list[Record], list[Record]]:
    """Part pods into those that would break a budget, if all before them went too, and the others.

    Both parts keep the order.
    """
    left = [(budget, [budget.allowed]) for budget in budgets]
    violating: list[Record] = []
    others: list[Record] = []
    for record in pods:
        pod = record.pod
        labels = dict(pod.labels) if left else {}
        broken = False
        for budget, allowed in left if labels else ():
            assert budget.selector is not None
            if budget.namespace != pod.namespace or pod.name in budget.disrupted:
                continue
            if matches(budget.selector, labels):
                allowed[0] -= 1
                broken |= allowed[0] < 0
        (violating if broken else others).append(record)
    return violating, others
