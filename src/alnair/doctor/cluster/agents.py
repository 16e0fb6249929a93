"""Does an agent run on each node that shall have one, and do its GPUs work?"""

from typing import Final

import msgspec

from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.wire import NodeWire
from alnair.kube.resources import LEASES, NODES, Manifest
from alnair.kube.timestamps import timestamp
from alnair.local.simnodes import LEASE as SIMULATED
from alnair.model import names
from alnair.model.plurals import counted

#: Seconds after which the scheduler takes an agent for dead (docs/reference/names.md).
_FRESH: Final = 40.0
_KUBECTL: Final = f"kubectl --namespace {names.NAMESPACE}"


async def agents(look: ClusterLook) -> list[Finding]:
    """On each node with the agent's label an agent renews its lease and tells of its GPUs."""
    nodes = {one["metadata"]["name"]: one for one in await look.all(NODES)}
    leases, wanted = await look.leases(), await look.agent_nodes()
    now = look.read_at(LEASES, names.NAMESPACE)
    bad = []
    for node, lease in sorted(wanted.items()):
        problem = _problem(nodes[node], leases.get(lease), now)
        if problem:
            fix = f"{_KUBECTL} get pods --output wide --field-selector spec.nodeName={node}"
            bad.append(error(problem, f"node/{node}", fix=fix))
    known = {*wanted.values(), SIMULATED}
    left = [
        name
        for name in sorted(leases)
        if name.startswith(names.AGENT_LEASE_PREFIX) and name not in known
    ]
    for name in left:
        where = f"lease/{name} in {names.NAMESPACE}"
        fix = f"{_KUBECTL} delete lease {name}"
        bad.append(warning("the lease of an agent whose node is gone", where, fix=fix))
    if bad:
        return bad
    if not wanted:
        text = "no node has the agent's label: GPUs are shared on none"
        return [warning(text, fix="kubectl label node NODE ai.centaurus.io/agent=enabled")]
    return [ok(f"an agent is at work on each of {counted(len(wanted), 'node')}")]


def _problem(node: Manifest, lease: Manifest | None, now: float) -> str:
    if lease is None:
        return "no agent has been seen on it"
    age = now - timestamp(lease.get("spec", {}).get("renewTime") or "")
    if age > _FRESH:
        return f"its agent was seen {age:.0f} s ago; after {_FRESH:.0f} s nothing it says counts"
    if names.GPU_STATIC not in node["metadata"].get("annotations", {}):
        return "its agent tells of no GPUs"
    return ""


async def gpus(look: ClusterLook) -> list[Finding]:
    """All GPUs that agents tell of are healthy."""
    found, count = [], 0
    for one in await look.all(NODES):
        node = project_node(msgspec.convert(one, NodeWire))
        where = f"node/{node.name}"
        if node.problem:
            found.append(error(node.problem, where, fix=f"kubectl describe {where}"))
        for gpu in node.gpus:
            count += 1
            if gpu.problem:
                text = f"GPU {gpu.index} ({gpu.uuid}) is unhealthy: {gpu.problem}"
                fix = f"kubectl drain {node.name} --ignore-daemonsets"
                found.append(warning(text, where, fix=fix))
    return found or [ok(f"{count} GPUs are described, and none is unhealthy")]
