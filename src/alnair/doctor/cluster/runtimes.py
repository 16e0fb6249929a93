"""Are the container runtimes of nodes with agents new enough to be told of devices by CDI?"""

import re
from typing import Final

from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.resources import NODES

#: Runtime → the first version with CDI, and the first that has it switched on.
_CDI: Final = {"containerd": ((1, 7), (2, 0)), "cri-o": ((1, 23), (1, 23))}
#: What `alnair up` has beside real nodes runs no containers.
_SIMULATED: Final = ("", "fake", "kwok")


async def runtimes(look: ClusterLook) -> list[Finding]:
    """The container runtime of each node with an agent knows CDI (containerd 1.7)."""
    wanted, found = await look.agent_nodes(), []
    for node in await look.all(NODES):
        if node["metadata"]["name"] not in wanted:
            continue
        said = node.get("status", {}).get("nodeInfo", {}).get("containerRuntimeVersion", "")
        finding = judged(said, f"node/{node['metadata']['name']}")
        found += [finding] if finding else []
    bad = [one for one in found if one.level != "ok"]
    return bad or [ok("the runtimes of nodes with agents know CDI")]


def judged(said: str, where: str) -> Finding | None:
    """Say how a node's runtime stands to CDI; None: it runs no containers.

    Args:
        said: As the node's `containerRuntimeVersion`.
        where: The node.
    """
    name, _, text = said.partition("://")
    if name.partition("-")[0] in _SIMULATED:
        return None
    fix = f"kubectl get {where} --output wide"
    numbers = re.match(r"v?(\d+)\.(\d+)", text)
    if name not in _CDI or numbers is None:
        return warning(f"the runtime is {said}: it is not known whether it has CDI", where, fix=fix)
    first, default = _CDI[name]
    version = (int(numbers[1]), int(numbers[2]))
    if version < first:
        text = f"{said} has no CDI, by which containers get their GPUs: that needs {_shown(first)}"
        return error(text, where, fix=fix)
    if version < default:
        text = f"{said} has CDI only where enable_cdi = true is in its configuration"
        return warning(text, where, fix="containerd config dump | grep enable_cdi")
    return ok(f"{said} knows CDI", where)


def _shown(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
