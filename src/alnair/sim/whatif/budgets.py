"""Disruption budgets in the course of things: evictions spend them, replacements restore them."""

from msgspec.structs import replace

from alnair.model.disruption import DisruptionBudget
from alnair.model.workload import Pod
from alnair.scheduler.state.disruption_budgets import KIND
from alnair.scheduler.state.pods.label_selectors import matches
from alnair.sim.virtual_api import VirtualApi


def of(api: VirtualApi, pod: Pod) -> list[DisruptionBudget]:
    """Return the budgets that select the pod."""
    labels = dict(pod.labels)
    return [
        budget
        for (kind, namespace, _), budget in api.objects.items()
        if kind == KIND
        and namespace == pod.namespace
        and budget.selector is not None
        and budget.selector.requirements
        and matches(budget.selector, labels)
    ]


def change(api: VirtualApi, pod: Pod, by: int) -> None:
    """Let the budgets of a pod allow so many more evictions, or fewer."""
    for budget in of(api, pod):
        changed = replace(budget, allowed=budget.allowed + by)
        api.set_object(KIND, budget.name, changed, budget.namespace)
