"""What a cluster looks like from outside: its components, their health, and how much is in it."""

import time
from collections.abc import Mapping

import msgspec
import psutil

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.resources import NODES, PODS, Manifest, Resource
from alnair.local import leftover_leases
from alnair.local.components import health
from alnair.local.components.components import COMPONENTS, OURS
from alnair.local.components.ports import API_SERVER
from alnair.local.components.processes import Running
from alnair.local.components.supervision import Supervised
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.programs import versions


class ComponentStatus(msgspec.Struct, omit_defaults=True):
    """One component."""

    name: str
    healthy: bool
    problem: str = ""
    """Why it is not well."""
    version: str = ""
    pid: int | None = None
    port: int | None = None
    uptime_seconds: int | None = None
    cpu_seconds: float | None = None
    memory_mib: int | None = None
    log: str = ""


class ClusterStatus(msgspec.Struct):
    """A whole cluster."""

    name: str
    healthy: bool
    server: str
    kubeconfig: str
    components: list[ComponentStatus]
    nodes: int | None
    """None: the API server did not say."""
    pods: int | None
    notes: list[str] = []
    """What else one should know, such as for whom our scheduler waits."""

    @property
    def answers(self) -> bool:
        """Whether the API server does."""
        return self.nodes is not None


class _Continued(msgspec.Struct, rename="camel"):
    remaining_item_count: int = 0


class _Page(msgspec.Struct):
    metadata: _Continued
    items: list[msgspec.Raw]


_VERSIONS = {program: module.version for module in versions.MODULES for program in module.programs}


async def status(cluster: LocalCluster) -> ClusterStatus:
    """Asks every component of a cluster, and the API server for its nodes and pods.

    Raises:
        LocalClusterError: There is no such cluster.
    """
    remembered = cluster.remembered()
    if remembered is None and cluster.layout.state.exists():
        raise LocalClusterError(
            f"{cluster.layout.state} is damaged: run 'alnair up --name {cluster.name}',"
            " which finds the cluster's processes and writes it anew"
        )
    if remembered is None:
        raise LocalClusterError(
            f"there is no cluster {cluster.name!r}: start it with 'alnair up --name {cluster.name}'"
        )
    running = cluster.running()
    context = health.trust(cluster.layout, cluster.pki)
    found = []
    for name in remembered.components:
        port = remembered.ports.get(name) if COMPONENTS[name].has_port else None
        one = ComponentStatus(
            name,
            healthy=False,
            version=_VERSIONS.get(name, ""),
            port=port,
            log=str(cluster.layout.log(name)),
        )
        if name in running:
            seconds = health.ONCE_SECONDS
            problem = await health.probe(name, cluster.layout, port, context, seconds)
            one.healthy, one.problem = problem is None, problem or ""
            _measure(one, running[name].process)
        else:
            one.problem = "not running"
        found.append(one)
    if real_node := cluster.real_node():
        found += [await _of_node(cluster, part, running) for part in real_node.components()]
    nodes = pods = None
    notes: list[str] = []
    if any(one.name == API_SERVER and one.healthy for one in found):
        try:
            async with Client(client_config.load(cluster.kubeconfig())) as client:
                nodes, pods = await _count(client, NODES), await _count(client, PODS)
                notes = await _waits(client, running)
        except KubeError:
            pass
    return ClusterStatus(
        name=cluster.name,
        healthy=nodes is not None and all(one.healthy for one in found),
        server=f"https://127.0.0.1:{remembered.ports[API_SERVER]}",
        kubeconfig=str(cluster.kubeconfig()),
        components=found,
        nodes=nodes,
        pods=pods,
        notes=notes,
    )


async def _waits(client: Client, running: Mapping[str, Running]) -> list[str]:
    """For whom our processes wait before they work."""
    began = {name: running[name].process.create_time() for name in OURS if name in running}
    said = [await leftover_leases.waits_for(client, *one) for one in began.items()]
    return [each for each in said if each]


async def _of_node(
    cluster: LocalCluster, part: Supervised, running: Mapping[str, Running]
) -> ComponentStatus:
    """A component of the real node: it is asked in its own way, and has no port of the machine."""
    one = ComponentStatus(
        part.name,
        healthy=False,
        problem="not running",
        version=_VERSIONS.get(part.name, ""),
        log=str(cluster.layout.log(part.name)),
    )
    if part.name in running:
        until = time.monotonic() + health.ONCE_SECONDS
        problem = await part.asked()
        while problem and problem.startswith(health.NO_ANSWER) and time.monotonic() < until:
            problem = await part.asked()
        one.healthy, one.problem = problem is None, problem or ""
        _measure(one, running[part.name].process)
    return one


def _measure(one: ComponentStatus, process: psutil.Process) -> None:
    try:
        with process.oneshot():
            one.pid = process.pid
            one.uptime_seconds = max(0, int(time.time() - process.create_time()))
            times = process.cpu_times()
            one.cpu_seconds = round(times.user + times.system, 1)
            one.memory_mib = process.memory_info().rss >> 20
    except psutil.Error:
        # It ended while it was looked at.
        one.healthy, one.problem = False, "not running"


async def _count(client: Client, resource: Resource[Manifest]) -> int:
    """The number of objects, from one of them and what the server says remains."""
    page = msgspec.json.decode(
        await client.raw("GET", resource.collection(), query={"limit": "1"}), type=_Page
    )
    return len(page.items) + page.metadata.remaining_item_count
