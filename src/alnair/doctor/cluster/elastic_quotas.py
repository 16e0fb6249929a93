"""Can ElasticQuotas be kept? The API server judges each alone, and knows no nodes."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.crds import quota_rules
from alnair.kube.objects import wire
from alnair.kube.objects.amounts import base_units
from alnair.kube.objects.namespaced_limits import project_quota
from alnair.kube.resources import ELASTIC_QUOTAS, NODES
from alnair.model.near_names import near
from alnair.model.quota import Quota

Quotas = dict[str, list[Quota]]


async def elastic_quotas(look: ClusterLook) -> list[Finding]:
    """ElasticQuotas can be read, and bound what nodes have, and no more than that."""
    quotas: Quotas = {}
    for one in await look.all(ELASTIC_QUOTAS):
        quota = project_quota(msgspec.convert(one, wire.ElasticQuotaWire))
        quotas.setdefault(one["metadata"]["namespace"], []).append(quota)
    if not quotas:
        return [ok("there are none")]
    offered: Counter[str] = Counter()
    for node in await look.all(NODES):
        offered.update(base_units(node.get("status", {}).get("allocatable")))
    found = [*_of_each(quotas, offered), *_together(quotas, offered)]
    return found or [ok(f"{sum(map(len, quotas.values()))} can be read, and can be kept")]


def _of_each(quotas: Quotas, offered: Counter[str]) -> Iterator[Finding]:
    for namespace, several in sorted(quotas.items()):
        for quota in several:
            where = f"elasticquota/{quota.name} in {namespace}"
            fix = f"kubectl --namespace {namespace} edit elasticquota {quota.name}"
            if quota.problem:
                yield error(f"it counts for nothing: {quota.problem}", where, fix=fix)
            for resource, least in sorted(quota.min.items()):
                if least > quota.max.get(resource, least):
                    text = f"spec.min of {resource} is more than spec.max, and spec.max holds"
                    yield warning(text, where, fix=fix)
            for resource in sorted({*quota.min, *quota.max} - {*offered, *quota_rules.PLAIN}):
                if offered:
                    hint = "".join(f": is {one} meant?" for one in near(resource, offered, 1))
                    yield warning(f"no node offers {resource}{hint}", where, fix=fix)
        if len(several) > 1:
            every = ", ".join(sorted(one.name for one in several))
            text = f"of several quotas ({every}) the least of each bound counts"
            fix = f"kubectl --namespace {namespace} get elasticquotas"
            yield warning(text, f"namespace/{namespace}", fix=fix)


def _together(quotas: Quotas, offered: Counter[str]) -> Iterator[Finding]:
    """What is guaranteed to all together is more than there is."""
    guaranteed: Counter[str] = Counter()
    for several in quotas.values():
        for resource in {name for one in several for name in one.min}:
            guaranteed[resource] += min(one.min[resource] for one in several if resource in one.min)
    for resource, amount in sorted(guaranteed.items()):
        if amount > offered[resource] > 0:
            unit = 1000 if resource == "cpu" else 1
            text = (
                f"all quotas together guarantee {amount / unit:.15g} of {resource}, and nodes have"
                f" {offered[resource] / unit:.15g}: not every namespace can have its own at once"
            )
            yield warning(text, fix="kubectl get elasticquotas --all-namespaces")
