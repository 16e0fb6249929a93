"""The churn of `gpu_churn.py` in memory: profiles on the production engine, without API server."""

import random
from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from alnair.kube.objects import simulated_nodes, wire
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.local.nodelist import alike
from alnair.model.action import Report
from alnair.model.workload import PodSpec
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.allocation_scores import ResourceWeight, ScoringStrategy
from alnair.scheduler.framework.extension_points import Depends, Normalize, Profile
from alnair.scheduler.plugins.gpu_share.plugin import GpuShare
from alnair.scheduler.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from alnair.scheduler.plugins.node_resources_fit.plugin import FitArguments, NodeResourcesFit
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows, of_rows
from alnair.sim.virtual_api import VirtualApi
from lib.gpu_churn import Case, Tally, manifest
from lib.kube_weights import RESOURCES

_NOW: Final = "2026-01-01T00:00:00Z"


class RandomTies:
    """Nodes that all other plugins find alike are taken at random, as kube-scheduler takes them.

    What is drawn is drawn anew for every pod.
    """

    name = "RandomTies"
    tie_breakers = ("RandomTies",)
    depends = Depends.PODS
    normalize: Normalize | None = None

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)

    def score(self, spec: PodSpec, cluster: Cluster) -> "RandomTies":
        return self

    def over(self, feasible: Mask) -> Column:
        return self._draw.integers(0, 101, feasible.size).astype(float)


class BestFitByGpu:
    """The fewest free GPUs come first."""

    name = "BestFitByGpu"
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self) -> None:
        self._cluster: Cluster | None = None

    def score(self, spec: PodSpec, cluster: Cluster) -> "BestFitByGpu":
        self._cluster = cluster
        return self

    def __call__(self, rows: Rows) -> Column:
        assert self._cluster is not None
        score: Column = 100.0 - of_rows(self._cluster.devices.whole_free, rows)
        return score


def kube(kind: str, seed: int) -> Profile:
    """What stands in for kube-scheduler: its scores of pods that name only GPUs."""
    weights = tuple(ResourceWeight(name, weight) for name, weight in RESOURCES.items())
    arguments = FitArguments(scoring_strategy=ScoringStrategy(kind, weights))
    own = [NodeResourcesFit(arguments), NodeResourcesBalancedAllocation()]
    return Profile(f"kube {kind}", [PrioritySort(), *own, GpuShare(), RandomTies(seed)])


def best_fit(seed: int) -> Profile:
    own = [NodeResourcesFit(), BestFitByGpu(), GpuShare(), RandomTies(seed)]
    weights = {"NodeResourcesFit": 0}
    return Profile("best fit", [PrioritySort(), *own], weights)


def profile(name: str, seed: int) -> Profile:
    others: dict[str, Callable[[], Profile]] = {
        "kube MostAllocated": lambda: kube("MostAllocated", seed),
        "kube LeastAllocated": lambda: kube("LeastAllocated", seed),
        "best fit": lambda: best_fit(seed),
    }
    if name in others:
        return others[name]()
    return next(p for p in profiles() if p.scheduler == name)


def run(case: Case, name: str, model: str) -> dict[str, float]:
    """Let a profile place the pods of the case, and return the means."""
    api = VirtualApi()
    for node in alike(case.nodes, 8, model):
        document = simulated_nodes.manifest(node, _NOW)
        api.put(project_node(msgspec.convert(document, wire.NodeWire)))
    engine = Engine([profile(name, case.seed)], seed=case.seed)
    project, tally = PodProjector(), Tally(case.nodes)
    for number, step in enumerate(case.steps):
        api.now = 60.0 * number
        for pod, gpus in step.arrivals.items():
            document = manifest(pod, gpus, name, "bench")
            document["metadata"]["creationTimestamp"] = _NOW
            api.set_pod(project(msgspec.convert(document, wire.PodWire)))
        _settle(api, engine)
        bound = {pod: api.pods[pod].node for pod in step.arrivals if api.pods[pod].node}
        for pod in tally.step(step.arrivals, bound):
            api.delete_uid(pod)
        for pod in step.departures:
            if pod in api.pods:
                api.delete_uid(pod)
                tally.gone(pod)
    return tally.result()


def _settle(api: VirtualApi, engine: Engine) -> None:
    while True:
        batch = list(api.inbox)
        api.inbox.clear()
        actions = engine.step(batch, api.now)
        for action in actions:
            if not isinstance(action, Report):
                api.apply(action)
        if not actions and not api.inbox:
            return
