"""Who leads, is that fresh, and is it one?"""

from typing import Final

import msgspec

from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Finding, Level, error, ok, warning
from alnair.kube.errors import KubeError
from alnair.kube.lease_timings import LEASE_DURATION
from alnair.kube.resources import LEASES, Manifest
from alnair.kube.timestamps import timestamp
from alnair.live.installed import installed
from alnair.model import names

_KUBECTL: Final = f"kubectl --namespace {names.NAMESPACE}"
#: Seconds that a renewal may take, beyond the lease's own duration.
_LATE: Final = 3.0


async def leaders(look: ClusterLook) -> list[Finding]:
    """Of the scheduler and the controller one leads each, and renews its lease."""
    leases = await look.leases()
    now = look.read_at(LEASES, names.NAMESPACE)
    judged = {
        f"alnair-{component}": _judged(component, leases.get(f"alnair-{component}"), now)
        for component in ("scheduler", "controller")
        if component not in look.without
    }
    why = {}
    if any(one.level is not Level.OK for one in judged.values()):
        why = await _unready(look)
    found = [_because(one, why.get(name, "")) for name, one in judged.items()]
    everywhere = await look.all(LEASES)
    return [*found, *_several(everywhere, look.read_at(LEASES))]


def _judged(component: str, lease: Manifest | None, now: float) -> Finding:
    where = f"lease/alnair-{component} in {names.NAMESPACE}"
    fix = f"{_KUBECTL} get pods --selector app.kubernetes.io/component={component}"
    if lease is None:
        return warning(f"no {component} has ever led", where, fix=fix)
    holder = lease["spec"].get("holderIdentity") or ""
    if not holder:
        return error(f"no {component} leads: the last one gave its lease back", where, fix=fix)
    age, duration = _age(lease, now)
    if age > duration + _LATE:
        text = f"no {component} leads: {holder} renewed its lease {age:.0f} s ago, for {duration} s"
        return error(text, where, fix=fix)
    return ok(f"{holder} leads", where)


async def _unready(look: ClusterLook) -> dict[str, str]:
    """Return why components that are installed as pods are not ready, as 'alnair status' says."""
    try:
        found = await installed(look.client)
    except KubeError:  # who may not read pods has the fix
        return {}
    return {one.name: one.problem for one in found if one.ready < one.wanted}


def _because(finding: Finding, why: str) -> Finding:
    if finding.level is Level.OK or not why:
        return finding
    return msgspec.structs.replace(finding, what=f"{finding.what}; {why}")


def _several(leases: list[Manifest], now: float) -> list[Finding]:
    """Two schedulers that lead by leases of different names both place the same pods."""
    fresh = [
        f"{one['metadata']['namespace']}/{one['metadata']['name']}"
        for one in leases
        if names.METRICS_URL in (one["metadata"].get("annotations") or {})
        and one["metadata"]["name"] != names.CONTROLLER
        and one["spec"].get("holderIdentity")
        and _age(one, now)[0] <= _age(one, now)[1] + _LATE
    ]
    if len(fresh) < 2:
        return []
    text = "several schedulers lead, by leases of their own: they cross where names are the same"
    return [error(text, ", ".join(fresh), fix="kubectl get leases --all-namespaces --output wide")]


def _age(lease: Manifest, now: float) -> tuple[float, int]:
    """Seconds since the last renewal, and for how many it holds."""
    spec = lease.get("spec", {})
    renewed = timestamp(spec.get("renewTime") or "")
    return now - renewed, spec.get("leaseDurationSeconds") or LEASE_DURATION
