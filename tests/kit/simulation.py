"""Scenarios for tests of the simulator."""

import random
from collections.abc import Sequence
from typing import Any

from alnair.history.history import History
from alnair.model.nodes import Node
from alnair.model.quota import Quota
from alnair.model.workload import PodSpec
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.objects.elastic_quotas import KIND as QUOTA
from alnair.sim.interference import SpeedModel
from alnair.sim.jobs import Job, NodeEvent, Scenario
from alnair.sim.simulation import Simulation, SimulationOptions
from kit import make

HOUR = 3600.0


def job(
    name: str,
    asked: PodSpec | None = None,
    *,
    at: float = 0.0,
    duration: float = 100.0,
    pods: int = 1,
    gang: bool = False,
    priority: int = 0,
    namespace: str = "default",
    **more: Any,
) -> Job:
    """A job of equal pods."""
    asked = asked if asked is not None else make.spec(whole=1)
    names = [name] if pods == 1 else [f"{name}-{i}" for i in range(pods)]
    group = name if gang else ""
    return Job(
        name=name,
        submitted=at,
        duration=duration,
        pods=tuple(
            make.pod(n, asked, priority=priority, group=group, namespace=namespace) for n in names
        ),
        gang=make.gang(name, pods, namespace=namespace) if gang else None,
        **more,
    )


def simulate(
    nodes: Sequence[Node],
    *jobs: Job,
    options: SimulationOptions | None = None,
    interference: SpeedModel | None = None,
    elastic: Any = None,
    **rest: Any,
) -> tuple[History, Simulation]:
    """Simulate jobs on nodes to the end."""
    scenario = Scenario(
        nodes=tuple(nodes), jobs=tuple(sorted(jobs, key=lambda j: j.submitted)), **rest
    )
    simulation = Simulation(
        scenario, profiles(), options, interference=interference, elastic=elastic
    )
    return simulation.run(), simulation


def random_scenario(seed: int, jobs: int = 60, nodes: int = 6) -> Scenario:
    """Gangs, shares, priorities, quotas and failing nodes."""
    draw = random.Random(seed)
    cluster = [make.node(f"n{i}", gpus=draw.choice([2, 4, 8]), cpu=32000) for i in range(nodes)]
    found, now = [], 0.0
    for i in range(jobs):
        now += draw.expovariate(1 / 60)
        asked = draw.choice(
            [
                make.spec(whole=1),
                make.spec(whole=2),
                make.spec(whole=4),
                make.spec(slice_mib=8192, compute=25),
                make.spec(slice_mib=20000, compute=60),
                make.spec(cpu=4000),
            ]
        )
        pods = draw.choice([1, 1, 1, 2, 3])
        found.append(
            job(
                f"j{i}",
                asked,
                at=now,
                duration=draw.uniform(10, HOUR),
                pods=pods,
                gang=pods > 1 and draw.random() < 0.7,
                priority=draw.choice([0, 0, 0, 100]),
                namespace=draw.choice(["default", "team-a", "team-b"]),
                user=draw.choice(["ann", "bob"]),
                util=draw.uniform(5, 100),
            )
        )
    events: list[NodeEvent] = []
    for node in draw.sample(cluster, 2):
        fails = draw.uniform(0, now)
        events.append(NodeEvent(fails, "fails", node))
        events.append(NodeEvent(fails + draw.uniform(10, 2000), "joins", node))
    quotas = [
        (QUOTA, team, "quota", Quota("quota", {make.names.GPU: 4}, {make.names.GPU: most}))
        for team, most in (("team-a", 8), ("team-b", 12))
    ]
    return Scenario(
        nodes=tuple(cluster),
        jobs=tuple(found),
        node_events=tuple(sorted(events, key=lambda e: e.time)),
        objects=tuple(quotas),
    )
