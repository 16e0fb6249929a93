"""A second real node beside a cluster's own: for pods that move from one to the other."""

import datetime as dt
import shutil
from pathlib import Path
from typing import Final

from alnair.kube.client import Client
from alnair.kube.resources import NODES
from alnair.local.access import kubeconfigs
from alnair.local.access.certificates import Pki
from alnair.local.components import ports
from alnair.local.controlplane import LocalCluster
from alnair.local.layout import Layout
from alnair.local.real_node import network, node
from alnair.local.real_node.node import RealNode
from alnair.local.real_node.settings import NodeSettings, link_name

NAME: Final = "real-1"


class SecondNode:
    """A node with all that the first one has; its files lie in the cluster's folder.

    Args:
        cluster: With a real node, which runs.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        state, first = cluster.remembered(), cluster.real_node()
        assert state is not None
        assert state.real_node is not None
        assert first is not None
        self._cluster, self._first = cluster, first
        self._layout = Layout(cluster.layout.folder, "second")
        self._port = state.ports[ports.API_SERVER]
        self._links = [link_name(cluster.layout), link_name(self._layout)]
        slot = network.free_slot(self._links[1], None, [state.real_node.slot])
        self._settings = NodeSettings(self._layout, slot, 2, "h100", self._port, name=NAME)
        self.node: RealNode = first.beside(self._settings, Pki(self._layout.pki))

    async def up(self, client: Client) -> None:
        """Have it run, and pods of both nodes reach one another."""
        own, theirs = Pki(self._layout.pki), self._cluster.pki
        own.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in (theirs.ca.certificate, theirs.ca.key):
            shutil.copy(path, own.folder)
        own.ensure(dt.datetime.now(dt.UTC), self._settings.address, NAME)
        kubeconfigs.write_all(self._layout, own, self._port, real_node=True)
        await self.node.up(client)
        for link in self._links:
            _forward(link, "1")

    async def down(self, client: Client) -> None:
        """Remove it; the cluster has its own DNS again."""
        await node.remove(self._layout, keep_data=False)
        _forward(self._links[0], "0")
        await client.delete(NODES, NAME)
        await self._first.up(client)
        shutil.rmtree(self._layout.folder)


def _forward(link: str, number: str) -> None:
    """Have what comes in by one device go on to others, or not; all else stays as it is."""
    Path("/proc/sys/net/ipv4/conf", link, "forwarding").write_text(number)
