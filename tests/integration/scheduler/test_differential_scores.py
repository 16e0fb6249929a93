"""How good a node is for a pod, the real kube-scheduler and ours say alike, plugin by plugin."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import PODS, Manifest
from alnair.model import names
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.arguments import made
from alnair.scheduler.framework.extension_points import Depends, PodsScore, Profile, Score
from alnair.scheduler.profiles import WEIGHTS, registry
from kit.live.differential import Judges, create, delete, engine_of, have
from kit.live.kube_scheduler import scores
from kit.live.random_cluster import RandomCluster

CLUSTERS = int(os.environ.get("ALNAIR_DIFFERENTIAL_CLUSTERS", "3"))
_JUDGED_SECONDS = 20.0
#: Reasons of a condition: it fits nowhere, or the extender has refused to bind it.
_JUDGED = ("Unschedulable", "SchedulerError")
Scores = dict[str, dict[str, int]]


def profile(arguments: Mapping[str, dict[str, Any]] | None = None) -> Profile:
    """A profile of all our plugins; without other arguments those of kube-scheduler's defaults."""
    given = arguments or {}
    plugins = [made(make, given.get(name, {}), name) for name, make in registry().items()]
    return Profile(names.SCHEDULER, plugins, WEIGHTS)


@settings(
    max_examples=CLUSTERS,
    derandomize="ALNAIR_DIFFERENTIAL_CLUSTERS" not in os.environ,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
@given(seed=st.integers(0, 2**32 - 1))
def test_each_plugin_gives_nodes_the_same_scores(judges: Judges, seed: int) -> None:
    cluster = RandomCluster(seed, names.SCHEDULER)
    differences, compared = asyncio.run(compare(judges, cluster, profile()))
    assert not differences, f"seed {seed}\n" + "\n\n".join(differences[:3])
    assert compared > 100, f"seed {seed}: only {compared} scores could be compared"


def test_other_arguments_would_be_noticed(judges: Judges) -> None:
    cluster = RandomCluster(1, names.SCHEDULER)
    packing = profile({"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}})
    differences, _ = asyncio.run(compare(judges, cluster, packing, times=1))
    assert differences
    assert all(text.startswith("NodeResourcesFit: ") for text in differences)


async def compare(
    judges: Judges, random: RandomCluster, ours: Profile, *, times: int = 3
) -> tuple[list[str], int]:
    """Have both score the nodes for all wishes; returns differences, and how many were compared.

    Args:
        judges: kube-scheduler, and the cluster for both.
        random: what there is.
        ours: our profile.
        times: how often to ask about wishes that they disagree on. kube-scheduler learns of nodes
            and of pods by two ways, so it may have been behind.
    """
    log = judges.cluster.layout.log("kube-scheduler")
    judges.extender.lets_pass = True
    try:
        async with Client(client_config.load(judges.cluster.kubeconfig())) as client:
            await have(client, random)
            found: list[str] = []
            doubtful, all_compared = random.wishes, 0
            for _ in range(times):
                found, doubtful, compared = await _differences(judges, client, doubtful, ours, log)
                all_compared = max(compared, all_compared)  # the first time there are all
                if not found:
                    break
            return found, all_compared
    finally:
        judges.extender.lets_pass = False


async def _differences(
    judges: Judges, client: Client, wishes: list[Manifest], ours: Profile, log: Path
) -> tuple[list[str], list[Manifest], int]:
    """Return what differs, the wishes that it is about, and how many scores were compared."""
    created = await create(client, PODS, wishes)
    engine = await engine_of(client, ours)
    found, doubtful, compared = [], [], 0
    for wish, pod in zip(wishes, created, strict=True):
        theirs = await _theirs(client, pod, log)
        texts = _compare(_ours(engine, pod["metadata"]["uid"], ours), theirs)
        if texts:
            doubtful.append(wish)
        found += [f"{text}\npod: {json.dumps(pod['spec'])}" for text in texts]
        compared += sum(map(len, theirs.values()))
    return found, doubtful, compared


async def _theirs(client: Client, pod: Manifest, log: Path) -> Scores:
    """Let kube-scheduler score the nodes for a gated pod, and delete it.

    It is over when the pod's condition says how: before, its room may still be taken.
    """
    meta = pod["metadata"]
    before = len(read(log))
    free = {"spec": {"schedulingGates": None}}
    await client.merge_patch(PODS, meta["name"], free, meta["namespace"])
    deadline = time.monotonic() + _JUDGED_SECONDS
    while True:
        now = await client.get(PODS, meta["name"], meta["namespace"])
        if any(c.get("reason") in _JUDGED for c in now["status"].get("conditions", ())):
            break
        if time.monotonic() > deadline:
            pytest.fail(f"kube-scheduler did not judge {meta['name']}: {now['status']}")
        await asyncio.sleep(0.02)
    await delete(client, PODS, [pod])
    return scores(read(log)[before:], f"{meta['namespace']}/{meta['name']}")


def read(log: Path) -> str:
    """Return what is in a log so far."""
    return log.read_text(errors="replace")


def _ours(engine: Engine, uid: str, profile: Profile) -> Scores:
    """Return what each plugin gives each feasible node, weighted."""
    spec = engine.view.pods[uid].spec
    evaluation = engine.view.evaluate(spec, profile)
    if evaluation.refusal is not None:
        return {}
    feasible = evaluation.rank >= 0
    found: Scores = {}
    for plugin in profile.scores:
        compiled = plugin.score(spec, engine.view.cluster)
        if compiled is None:
            continue
        if compiled.depends is Depends.PODS:
            points = cast("PodsScore", compiled).over(feasible)
        else:
            points = cast("Score", compiled)(np.arange(feasible.size))
        if compiled.normalize is not None:
            points = compiled.normalize(points, feasible)
        weight = profile.weights.get(plugin.name, 1)
        found[plugin.name] = {
            node: round(weight * points[row])
            for node, row in engine.view.cluster.columns.row_of.items()
            if feasible[row]
        }
    return found


def _compare(ours: Scores, theirs: Scores) -> list[str]:
    found = []
    for plugin in ours.keys() | theirs.keys():
        mine, their = ours.get(plugin, {}), theirs.get(plugin, {})
        if not theirs:
            continue  # fewer than two nodes: nothing to choose from
        if not mine or not their:
            # A plugin may leave out what is the same everywhere.
            alike = len(set((mine or their).values())) <= 1
        else:
            alike = mine == their
        if not alike:
            found.append(f"{plugin}: kube-scheduler {their}, ours {mine}")
    return found
