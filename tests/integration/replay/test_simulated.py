"""The simulator and a live cluster agree: the same pods in the same order land on the same GPUs."""

import asyncio
import uuid
from collections import Counter
from pathlib import Path

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import PodWire
from alnair.kube.resources import PODS
from alnair.local.components.components import ALNAIR_SCHEDULER, BARE
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from alnair.model.workload import PodGpuAssignment
from alnair.scheduler.profiles import profiles
from alnair.sim.inputs.pod_templates import PodStamp, node
from alnair.sim.jobs import Job, Scenario
from alnair.sim.simulation import Simulation
from alnair.traces import openb_files
from alnair.traces.arrivals import Arrival, in_given_order
from kit.command import alnair, last_json

#: Enough pods for some to share GPUs, and for all sizes to occur.
PODS_REPLAYED = 400
ORDER = "default-42.pods"
NAMESPACE = "openb"

#: Pod → its node and its GPUs.
Places = dict[str, tuple[str, PodGpuAssignment]]


def simulated(trace: openb_files.Trace, arrivals: list[Arrival]) -> Places:
    """Where the simulator places the pods, one after another."""
    nodes = tuple(map(node, trace.nodes))
    stamp = PodStamp(names.SCHEDULER, nodes)
    jobs = tuple(
        Job(
            name=arrival.name,
            submitted=float(second),
            pods=(stamp.pod(arrival.name, NAMESPACE, arrival.pod),),
        )
        for second, arrival in enumerate(arrivals)
    )
    simulation = Simulation(Scenario(nodes=nodes, jobs=jobs, begin=1.0), profiles())
    simulation.run()
    return {pod.name: (pod.node, pod.assignment) for pod in simulation.api.pods.values()}


async def live(cluster: LocalCluster) -> Places:
    """Where the live scheduler has bound them, by what the API server says."""
    project = PodProjector()
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        found = (await client.list(PODS.typed(PodWire), NAMESPACE)).items
    return {pod.name: (pod.node, pod.assignment) for pod in map(project, found)}


async def test_a_trace_is_placed_live_as_it_is_simulated(cluster_root: Path) -> None:
    cluster = LocalCluster(
        f"sim-{uuid.uuid4().hex[:8]}", root=cluster_root, components=(*BARE, ALNAIR_SCHEDULER)
    )
    cluster.prepare()
    await cluster.up()
    try:
        done = await asyncio.to_thread(
            alnair,
            *("replay", "--order", ORDER, "--limit", PODS_REPLAYED, "--namespace", NAMESPACE),
            *("--json", "--kubeconfig", cluster.kubeconfig()),
            seconds=300,
        )
        assert done.returncode == 0, done.stderr
        assert last_json(done)["pods"] == PODS_REPLAYED
        bound = await live(cluster)
    finally:
        await cluster.down()
    trace = openb_files.load()
    arrivals = in_given_order(trace.pods, openb_files.names(ORDER), ORDER)[:PODS_REPLAYED]
    assert {arrival.pod.gpus for arrival in arrivals} == {0, 1, 2, 4, 8}
    expected = simulated(trace, arrivals)
    tenants = Counter(
        part.uuid
        for _, assignment in expected.values()
        for _, parts in assignment
        for part in parts
    )
    assert max(tenants.values()) > 1
    assert len(bound) == PODS_REPLAYED
    assert {name: place for name, place in bound.items() if place != expected[name]} == {}
