"""The churn of `gpu_churn.py` in memory: profiles on the production engine, without API server."""

import time
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
from lib.gpu_churn import NODE, Case, Tally, manifest
from lib.kube_gpu_profiles import RESOURCES, STRATEGIES

#: The node with the fewest free GPUs, and of these the first: the plain rule.
BEST_FIT: Final = "best-fit"
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
        """Compile the score."""
        return self

    def over(self, feasible: Mask) -> Column:
        """Return 0-100 for each row, at random."""
        return self._draw.integers(0, 101, feasible.size).astype(float)


class BestFitByGpu:
    """The fewest free GPUs come first."""

    name = "BestFitByGpu"
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self) -> None:
        self._cluster: Cluster | None = None

    def score(self, spec: PodSpec, cluster: Cluster) -> "BestFitByGpu":
        """Compile the score."""
        self._cluster = cluster
        return self

    def __call__(self, rows: Rows) -> Column:
        """Return 100 less the free GPUs of each row."""
        assert self._cluster is not None
        score: Column = 100.0 - of_rows(self._cluster.devices.whole_free, rows)
        return score


def profile(name: str, seed: int) -> Profile:
    """Return one of our profiles, or what stands in for another scheduler.

    kube-scheduler's stand-in has its scores of pods that name only GPUs, and takes nodes alike at
    random; best fit takes them in the order that our profiles do.
    """
    if name == BEST_FIT:
        own = (NodeResourcesFit(), BestFitByGpu(), GpuShare())
        return Profile(name, [PrioritySort(), *own], {"NodeResourcesFit": 0})
    if name in STRATEGIES:
        weights = tuple(ResourceWeight(each, weight) for each, weight in RESOURCES.items())
        strategy = ScoringStrategy(STRATEGIES[name], weights)
        fit = NodeResourcesFit(FitArguments(scoring_strategy=strategy))
        own = (fit, NodeResourcesBalancedAllocation(), GpuShare(), RandomTies(seed))
        return Profile(name, [PrioritySort(), *own])
    return next(p for p in profiles() if p.scheduler == name)


def timed(task: tuple[Case, str, str]) -> tuple[dict[str, float], float]:
    """Do what `run` does, and return the seconds, too; for processes of their own."""
    begin = time.perf_counter()
    found = run(*task)
    return found, time.perf_counter() - begin


def run(case: Case, name: str, model: str) -> dict[str, float]:
    """Let a profile place the pods of the case, and return the means."""
    api = VirtualApi()
    for node in alike(case.nodes, NODE, model):
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
