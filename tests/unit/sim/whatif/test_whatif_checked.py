"""What an answer comes to keeps every promise, as the checker of API objects judges it."""

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from alnair.checker.cluster import check
from alnair.checker.objects.state import cluster_of
from alnair.kube.objects.annotations import gpu_assignment
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.simulated_nodes import manifest
from alnair.kube.objects.wire import NodeWire, PodWire
from alnair.model import names
from alnair.model.workload import Pod
from alnair.scheduler.engine import events
from alnair.scheduler.profiles import profiles
from alnair.sim.virtual_api import VirtualApi
from alnair.sim.whatif.changes import Changes, make
from alnair.sim.whatif.lookahead import Lookahead
from alnair.sim.whatif.plans import Freeing, freed
from alnair.traces.openb import TraceNode
from kit.live.scheduler_process import pod

Manifest = dict[str, Any]
WHEN = "2026-01-01T00:00:00Z"


def nodes_of(prefix: str, count: int, gpus: int, model: str) -> list[Manifest]:
    nodes = [TraceNode(f"{prefix}{i}", 64_000, 262_144, gpus, model) for i in range(count)]
    return [manifest(node, WHEN) for node in nodes]


def pods_of(prefix: str, count: int, draw: random.Random) -> list[Manifest]:
    found = []
    for number in range(count):
        limits: dict[str, Any] = {names.GPU: draw.choice([1, 1, 1, 2, 4])}
        if draw.random() < 0.4:
            memory, compute = draw.choice([(2048, 10), (8192, 40), (12288, 70)])
            limits = {names.VGPU_MEMORY: memory, names.VGPU_COMPUTE: compute, names.VGPU: 1}
        made = pod("team", f"{prefix}-{number}", limits=limits, uid=f"{prefix}-{number}")
        made["spec"]["tolerations"] = []
        found.append(made)
    return found


def projected(manifests: list[Manifest], *, owned: bool) -> list[Pod]:
    project = PodProjector()
    return [
        replace(project(msgspec.convert(m, PodWire, strict=False)), owned=owned) for m in manifests
    ]


def written(pods: Mapping[str, Pod], manifests: list[Manifest]) -> list[Manifest]:
    """The manifests as the API server would have them, by what became of the pods."""
    original = {m["metadata"]["name"]: m for m in manifests}
    found = []
    for one in pods.values():
        body = original[one.name]
        meta = {**body["metadata"], "uid": one.uid}
        if one.assignment:
            meta["annotations"] = {names.GPU_ASSIGNMENT: gpu_assignment(one.assignment, 0.0)}
        spec = {**body["spec"], **({"nodeName": one.node} if one.node else {})}
        found.append({**body, "metadata": meta, "spec": spec, "status": {"phase": "Running"}})
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_cluster_after_drains_additions_and_submissions_keeps_every_promise(seed: int) -> None:
    draw = random.Random(seed)
    nodes = nodes_of("a", 5, 8, "T4") + nodes_of("b", 3, 4, "A100") + nodes_of("c", 1, 0, "")
    old, new = pods_of("old", 70, draw), pods_of("new", 6, draw)
    api = VirtualApi(0.0)
    for node in nodes:
        api.put(project_node(msgspec.convert(node, NodeWire)))
    for one in projected(old, owned=True):
        api.set_pod(one)
    begin = Lookahead(list(api.known()), profiles(), now=0.0, seed=seed)
    begin.run(60.0)
    for one in list(begin.api.pods.values()):
        if draw.random() < 0.6 or not one.node:
            begin.api.delete_uid(one.uid)
    more = nodes_of("d", 2, 8, "H100")
    changes = Changes(
        add=tuple(project_node(msgspec.convert(node, NodeWire)) for node in more),
        remove=("a0",),
        drain=("a1", "b0"),
        pods=tuple(projected(new, owned=False)),
    )
    course = Lookahead(list(begin.api.known()), profiles(), now=60.0, seed=seed)
    make(changes, course)
    course.run(120.0)
    there = [node for node in (*nodes, *more) if node["metadata"]["name"] != "a0"]
    finding = check(cluster_of(there, written(course.api.pods, [*old, *new]), []))
    assert finding.violations == []
    assert finding.bound > 15
    assert not [p for p in course.api.pods.values() if p.node in ("a1", "b0")]

    tries = (freed(course.engine.view, Freeing(4, moves=5, nodes=n)) for n in range(1, 8))
    plan = next(plan for plan in tries if plan.moves)
    moved = dict(course.api.pods)
    for move in plan.moves:
        one = moved[move.uid]
        target = next(n for n in course.api.nodes.values() if n.name == move.target)
        gpus = [gpu for gpu in target.gpus if gpu.index in move.target_gpus]
        assert one.spec.gpu is not None
        (container, shares), *_ = one.assignment
        assert len(shares) == len(gpus)
        parts = tuple(
            replace(
                s, uuid=g.uuid, index=g.index, memory_mib=g.memory_mib if s.whole else s.memory_mib
            )
            for s, g in zip(shares, gpus, strict=True)
        )
        moved[move.uid] = replace(one, node=move.target, assignment=((container, parts),))
    finding = check(cluster_of(there, written(moved, [*old, *new]), []))
    assert finding.violations == []


def test_the_check_would_find_a_promise_that_is_broken() -> None:
    nodes = nodes_of("a", 1, 1, "T4")
    pods = [pod("team", f"p{i}", limits={names.GPU: 1}, uid=f"p{i}") for i in range(2)]
    (one, two) = projected(pods, owned=True)
    known = [events.NodeChanged(project_node(msgspec.convert(nodes[0], NodeWire)))]
    course = Lookahead([*known, events.PodChanged(one)], profiles(), now=0.0)
    course.run(10.0)
    placed = course.api.pods[one.uid]
    both = {one.uid: placed, two.uid: replace(two, node="a0", assignment=placed.assignment)}
    assert check(cluster_of(nodes, written(both, pods), [])).violations
