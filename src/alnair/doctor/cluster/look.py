"""What several checks read of a cluster: each kind is listed once."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.load_annotations import agent_lease
from alnair.kube.resources import LEASES, NODES, Manifest, Resource, grouped
from alnair.local import installation
from alnair.model import names

DAEMON_SETS: Final = grouped("apps", "v1", "daemonsets", "DaemonSet")
#: What an installation may do without, by the values of the chart that switch it off.
PARTS: Final = ("scheduler", "controller", "agent", "admission")
#: The label of the nodes that the chart's DaemonSet is for, where its own cannot be read.
OPTED_IN: Final[Mapping[str, str]] = {"ai.centaurus.io/agent": "enabled"}
#: Installs, and mends, all that the chart has; values that were given stay.
INSTALL: Final = (
    "helm upgrade --install alnair charts/alnair --namespace alnair-system"
    " --reset-then-reuse-values"
)

Progress = Callable[[str, int, int], None]


class ClusterLook:
    """A look at a cluster.

    Args:
        client: An open client.
        progress: Told what is done of something that takes a while, and how much of it.
        without: Parts that are left out on purpose, of `PARTS`.
    """

    def __init__(
        self,
        client: Client,
        progress: Progress = lambda what, done, total: None,
        without: Collection[str] = (),
    ) -> None:
        self.client = client
        self.progress = progress
        self.without = frozenset(without)
        self._lists: dict[str, asyncio.Task[list[Manifest]]] = {}
        self._read_at: dict[str, float] = {}

    async def all(self, kind: Resource[Manifest], namespace: str | None = None) -> list[Manifest]:
        """Return all objects of a kind, read once; none where the kind is not served.

        Raises:
            KubeError: They cannot be read.
        """
        path = kind.collection(namespace)
        if path not in self._lists:
            self._lists[path] = asyncio.ensure_future(self._list(kind, namespace))
        return await self._lists[path]

    def read_at(self, kind: Resource[Manifest], namespace: str | None = None) -> float:
        """Return when a kind was read, in seconds since the epoch: other checks may take long."""
        return self._read_at[kind.collection(namespace)]

    async def _list(self, kind: Resource[Manifest], namespace: str | None) -> list[Manifest]:
        self._read_at[kind.collection(namespace)] = time.time()
        try:
            return (await self.client.list(kind, namespace)).items
        except NotFound:
            return []

    async def get(
        self, kind: Resource[Manifest], name: str, namespace: str | None = None
    ) -> Manifest | None:
        """Return an object; None: there is none."""
        try:
            return await self.client.get(kind, name, namespace)
        except NotFound:
            return None

    async def json(self, path: str) -> dict[str, Any] | None:
        """Return what a path answers; None: it is not served."""
        try:
            found = await self.client.raw("GET", path)
        except NotFound:
            return None
        decoded: dict[str, Any] = msgspec.json.decode(found)
        return decoded

    async def leases(self) -> dict[str, Manifest]:
        """Return the leases of our namespace, by name."""
        return {one["metadata"]["name"]: one for one in await self.all(LEASES, names.NAMESPACE)}

    async def agent_nodes(self) -> dict[str, str]:
        """Return the nodes that shall have an agent, or have one, with the names of its lease."""
        set_ = await self.get(DAEMON_SETS, names.AGENT, names.NAMESPACE)
        wanted = OPTED_IN
        if set_ is not None:
            wanted = set_["spec"]["template"]["spec"].get("nodeSelector") or {}
        leases, found = await self.leases(), {}
        for node in await self.all(NODES):
            metadata = node["metadata"]
            lease = agent_lease(metadata.get("annotations", {}), metadata["name"])
            is_opted_in = wanted.items() <= metadata.get("labels", {}).items()
            if lease in leases or (is_opted_in and (wanted or set_ is not None)):
                found[metadata["name"]] = lease
        return found


def manifests(*kinds: str) -> list[Manifest]:
    """Return what the chart of this version installs of these kinds."""
    return [
        one
        for one in installation.documents()
        if one["kind"] in kinds
        and one["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") == "alnair"
    ]
