"""NodePorts: the ports of the host that a pod asks for are not taken on its node.

Source of semantics: `pkg/scheduler/framework/plugins/nodeports` of Kubernetes.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec.structs import replace

from alnair.model.workload import HostPort, PodSpec
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows, single

REASON = Reason("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    """Filters by host ports."""

    name = "NodePorts"

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Free | None":
        """Compile the filter."""
        return _Free(spec.ports, cluster) if spec.ports else None

    def relaxations(self, spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
        """Return to drop one of the ports."""
        for port in spec.ports:
            rest = tuple(p for p in spec.ports if p != port)
            text = f"drop the host port {port.port}/{port.protocol}"
            yield Relaxation("host-port", text, 0.4, replace(spec, ports=rest))


class _Free:
    depends = Depends.BOOKED

    def __init__(self, ports: tuple[HostPort, ...], cluster: Cluster) -> None:
        self._wanted = ports
        self._held = cluster.ports
        self._columns = cluster.columns

    def __call__(self, rows: Rows) -> Mask:
        taken = np.zeros(self._columns.alive.size, bool)
        one = single(rows)
        for port in self._wanted:
            for holders in self._held.holders(port):
                if one is None:
                    taken[np.fromiter(holders, np.intp, len(holders))] = True
                elif one in holders:
                    taken[one] = True
        return ~taken[rows]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield REASON, ~self(rows)
