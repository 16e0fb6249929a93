"""From API objects: namespaces, and disruption budgets and elastic quotas in them."""

from alnair.kube.objects import wire
from alnair.kube.objects.amounts import base_units
from alnair.kube.objects.selectors_and_affinity import label_selector
from alnair.model import quantity
from alnair.model.disruption import DisruptionBudget
from alnair.model.quota import Quota
from alnair.model.workload import (
    Labels,
)


def project_budget(budget: wire.BudgetWire) -> DisruptionBudget:
    """Return the budget as preemption sees it."""
    status = budget.status or wire.BudgetStatusWire()
    return DisruptionBudget(
        namespace=budget.metadata.namespace,
        name=budget.metadata.name,
        selector=label_selector(budget.spec.selector if budget.spec else None),
        allowed=status.disruptions_allowed,
        disrupted=frozenset(status.disrupted_pods or ()),
    )


def project_quota(quota: wire.ElasticQuotaWire) -> Quota:
    """Return the quota; what cannot be read of it becomes its `problem`."""
    spec = quota.spec or wire.ElasticQuotaSpecWire()
    try:
        return Quota(quota.metadata.name, base_units(spec.min), base_units(spec.max))
    except quantity.QuantityError as error:
        return Quota(quota.metadata.name, problem=f"spec: {error}")


def project_namespace(namespace: wire.NamespaceWire) -> Labels:
    """Return the namespace's labels, all that selectors see of it."""
    return tuple(sorted((namespace.metadata.labels or {}).items()))
