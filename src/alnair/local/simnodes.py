"""Simulated GPU nodes in a local cluster, kept by kwok.

They are Ready from the start and stay so without heartbeats (see the controller manager's flags),
and kwok plays the kubelet for the pods bound to them.
"""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Sequence

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists
from alnair.kube.objects.simulated_nodes import FAKE, capacity, manifest
from alnair.kube.resources import LEASES, NODES
from alnair.local.errors import LocalClusterError
from alnair.local.report import ProgressReport
from alnair.model import names
from alnair.model.plurals import counted
from alnair.model.quantity import nanos
from alnair.traces.openb import TraceNode

#: The freshness lease that all simulated nodes share. No agent renews it: it holds for the life of
#: the cluster.
LEASE = "alnair-agent-simulated"
_LEASE_SECONDS = 365 * 24 * 3600
_IN_FLIGHT = 32


class _Metadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class _Status(msgspec.Struct):
    capacity: dict[str, str] = {}


class _Present(msgspec.Struct):
    """What is read of a node that is there."""

    metadata: _Metadata
    status: _Status


async def refuse_machines(client: Client) -> None:
    """Fail in a cluster where others work: simulated nodes have no business beside theirs.

    Raises:
        LocalClusterError: A node is neither simulated nor the real one of a local cluster.
    """
    there = (await client.list(NODES.typed(_Present))).items
    machines = sorted(
        node.metadata.name
        for node in there
        if node.metadata.annotations.get(FAKE) != "fake"
        and names.REAL_NODE not in node.metadata.labels
    )
    if machines:
        more = f" and {len(machines) - 1} more" if machines[1:] else ""
        raise LocalClusterError(
            f"the cluster has nodes that are machines ({machines[0]}{more}), and simulated ones"
            " would stand among them: use a local cluster (alnair up --scheduler), by its --name"
        )


async def ensure(
    client: Client, nodes: Sequence[TraceNode], now: dt.datetime, report: ProgressReport
) -> int:
    """Has these nodes in the cluster; others stay as they are.

    Returns:
        How many were made.

    Raises:
        LocalClusterError: A node of the same name is there and is another one.
    """
    written = now.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    await _renew_lease(client, written)
    present = {
        node.metadata.name: node for node in (await client.list(NODES.typed(_Present))).items
    }
    missing = []
    for node in nodes:
        if node.name not in present:
            missing.append(node)
        elif not _is_same(present[node.name], node):
            raise LocalClusterError(
                f"node {node.name} is there already with other resources: delete it"
                f" (kubectl delete node {node.name}), or use another cluster (--name)"
            )
    queue = iter(missing)
    resource = NODES.typed(_Present)
    what, done = f"creating {counted(len(missing), 'node')}", 0

    async def work() -> None:
        nonlocal done
        for node in queue:
            # It is there when a request was repeated whose answer had been lost.
            with contextlib.suppress(AlreadyExists):
                await client.create(resource, manifest(node, written))
            done += 1
            report.progress(what, done, len(missing))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(_IN_FLIGHT, len(missing))):
            tasks.create_task(work())
    return len(missing)


def _is_same(present: _Present, node: TraceNode) -> bool:
    # By amount and not by text: the server writes 1000Mi as 1048576k.
    found = present.status.capacity
    return present.metadata.annotations.get(FAKE) == "fake" and all(
        name in found and nanos(found[name]) == nanos(text) for name, text in capacity(node).items()
    )


async def _renew_lease(client: Client, now: str) -> None:
    micro = now.replace("Z", ".000000Z")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": names.NAMESPACE},
        "spec": {
            "holderIdentity": "alnair-up",
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": micro,
        },
    }
    await client.apply(LEASES, lease, field_manager=names.FIELD_MANAGER)
