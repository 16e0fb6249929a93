"""All that an installation could leave behind, in a cluster and on its real node."""

import json
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NODES
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node.settings import NAME
from kit.live.all_objects import all_objects
from kit.real_node import node_shell

#: The node's own file systems, and where else programs keep what lasts.
_PLACES = ("/run", "/var/lib", "/var/log", "/etc/cdi", "/opt/alnair", "/etc/alnair")
#: Of images, pods and their networks, which come and go.
_BUSY = (
    "run/containerd",
    "run/cni",
    "run/netns",
    "run/runc",
    "run/fakegpu/proc",
    "var/lib/kubelet/pods",
    "var/log/containers",
    "var/log/pods",
    "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
)


async def seen(cluster: LocalCluster, client: Client) -> set[str]:
    """A line for each object, and for each label, amount, file and mount of the real node.

    What simulated nodes have is left out.
    """
    found = {f"object {one}" for one in await all_objects(client)}
    for lease in json.loads(await client.raw("GET", LEASES.collection(None)))["items"]:
        metadata = lease["metadata"]
        # Those of the API server and the kubelet themselves.
        if metadata["namespace"] not in ("kube-system", "kube-node-lease"):
            found.add(f"object Lease {metadata['namespace']}/{metadata['name']}")
    found.update(_of_node(await client.get(NODES, NAME)))
    listed = node_shell.listed(cluster.layout.folder, _PLACES)
    found.update(f"file {path}" for path in listed if not path.startswith(_BUSY))
    mounts = node_shell.run(cluster.layout.folder, "cat", "/proc/1/mounts").splitlines()
    places = (line.split()[1] for line in mounts)
    found.update(f"mount {at}" for at in places if not at.lstrip("/").startswith(_BUSY))
    return {line for line in found if "/a100x8-" not in line}


def _of_node(node: dict[str, Any]) -> set[str]:
    status = node["status"]
    parts: dict[str, dict[str, str]] = {
        "label": node["metadata"]["labels"],
        "annotation": node["metadata"].get("annotations", {}),
        "capacity": status["capacity"],
        "allocatable": status["allocatable"],
        "condition": {one["type"]: one["status"] for one in status["conditions"]},
        "taint": {one["key"]: one["effect"] for one in node["spec"].get("taints", ())},
    }
    restless = ("memory", "ephemeral-storage", "cpu")
    return {
        f"{part} {key}={value}"
        for part, every in parts.items()
        for key, value in every.items()
        if key not in restless
    }
