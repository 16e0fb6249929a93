"""All checks, by name, in the order in which they are made; the reference page lists the same."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from alnair.doctor.cluster import (
    agents,
    clock,
    crds,
    elastic_quotas,
    leaders,
    nvidia_plugin,
    policies,
    rights,
    runtimes,
    versions,
)
from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Finding

ClusterCheck = Callable[[ClusterLook], Awaitable[list[Finding]]]
#: Takes a `NodeLook`, whose import needs what only the agent's image has.
NodeCheck = Callable[[Any], list[Finding]]

CLUSTER: Final[dict[str, ClusterCheck]] = {
    "api-server": versions.api_server,
    "served-apis": versions.served,
    "clock": clock.clock,
    "custom-resources": crds.custom_resources,
    "policies": policies.there_and_bound,
    "policies-in-force": policies.in_force,
    "rights": rights.rights,
    "leaders": leaders.leaders,
    "agents": agents.agents,
    "runtimes": runtimes.runtimes,
    "gpus": agents.gpus,
    "nvidia-plugin": nvidia_plugin.nvidia_plugin,
    "elastic-quotas": elastic_quotas.elastic_quotas,
}
#: Checks of a part that may be left out: nothing is to be found of it then.
OF_A_PART: Final = {
    "policies": "admission",
    "policies-in-force": "admission",
    "agents": "agent",
    "runtimes": "agent",
    "gpus": "agent",
    "nvidia-plugin": "agent",
}


def node_checks() -> dict[str, NodeCheck]:
    """Return the checks of a node."""
    from alnair.doctor.node import driver, kubelet, library, mounts, mps, runtime  # noqa: PLC0415

    return {
        "driver": driver.driver,
        "control-groups": mounts.cgroups,
        "container-devices": runtime.container_devices,
        "kubelet": kubelet.sockets,
        "agent-folder": mounts.agent_folder,
        "libraries": library.libraries,
        "mps": mps.mps,
    }


def explanation(check: ClusterCheck | NodeCheck) -> str:
    """Return what must hold, in a sentence."""
    return (check.__doc__ or "").strip()
