"""Whether a pod may go to a node, the real kube-scheduler and ours say alike."""

import asyncio
import json
import os
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import (
    PODS,
    Manifest,
)
from alnair.model import names
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.profiles import profiles
from kit.live.differential import Judges, all_pods, create, delete, engine_of, have
from kit.live.kube_scheduler import REFUSAL, Extender
from kit.live.random_cluster import RandomCluster

#: Clusters to compare, with `random_cluster.PROBES` pods each; more by hand.
CLUSTERS = int(os.environ.get("ALNAIR_DIFFERENTIAL_CLUSTERS", "5"))
#: What kube-scheduler says of nodes that it did not look at, since the pod names others.
NARROWED = "node(s) didn't satisfy plugin(s)"
_JUDGED_SECONDS = 30.0


@settings(
    max_examples=CLUSTERS,
    derandomize="ALNAIR_DIFFERENTIAL_CLUSTERS" not in os.environ,
    # A smaller seed is no simpler cluster.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_same_nodes_pass_all_filters(judges: Judges, seed: int) -> None:
    differences = asyncio.run(compare(judges, RandomCluster(seed, names.SCHEDULER)))
    assert not differences, f"seed {seed}\n" + "\n\n".join(differences[:3])


def test_a_plugin_that_is_missing_would_be_noticed(judges: Judges) -> None:
    cluster = RandomCluster(1, names.SCHEDULER)
    assert asyncio.run(compare(judges, cluster, left_out="PodTopologySpread", times=1))


async def compare(
    judges: Judges, random: RandomCluster, *, left_out: str = "", times: int = 3
) -> list[str]:
    """Have both judge all probes of the cluster; returns what they see differently.

    Args:
        judges: kube-scheduler, and the cluster for both.
        random: what there is.
        left_out: a plugin that ours does without.
        times: how often to ask about probes that they disagree on. kube-scheduler learns of nodes
            and of pods by two ways, so it may have been behind.
    """
    profile = _profile(left_out)
    kubeconfig = client_config.load(judges.cluster.kubeconfig())
    async with Client(kubeconfig) as client:
        await have(client, random)
        found: list[str] = []
        doubtful = random.probes
        for _ in range(times):
            found, doubtful = await _differences(judges, client, random, doubtful, profile)
            if not found:
                break
        return found


async def _differences(
    judges: Judges,
    client: Client,
    random: RandomCluster,
    probes: list[Manifest],
    profile: Profile,
) -> tuple[list[str], list[Manifest]]:
    created = await create(client, PODS, probes)
    uids = {pod["metadata"]["uid"]: pod for pod in created}
    theirs = await _theirs(judges.extender, client, set(uids))
    engine = await engine_of(client, profile)
    texts, doubtful = [], []
    for probe, pod in zip(probes, created, strict=True):
        mine = _evaluation(engine, pod["metadata"]["uid"], profile)
        passed, said = theirs[pod["metadata"]["uid"]]
        if passed != _passed(engine, mine):
            doubtful.append(probe)
            texts.append(_told(random, probe, engine, mine, passed, said))
        elif not _agree(said, mine):
            doubtful.append(probe)
            ours = mine.refusal or _counted(mine)
            texts.append(f"kube-scheduler: {said}\nours: {ours}\npod: {json.dumps(probe)}")
    await delete(client, PODS, created)
    return texts, doubtful


# --- the two judges -------------------------------------------------------------------------------


async def _theirs(
    extender: Extender, client: Client, uids: set[str]
) -> dict[str, tuple[frozenset[str], str]]:
    """Wait until kube-scheduler judged the pods; returns for each what passed and what it said."""
    deadline = time.monotonic() + _JUDGED_SECONDS
    while True:
        judged: dict[str, tuple[frozenset[str], str]] = {}
        for pod in await all_pods(client):
            uid = pod["metadata"]["uid"]
            for condition in pod.get("status", {}).get("conditions", ()):
                if uid in uids and condition["type"] == "PodScheduled":
                    message = condition.get("message", "")
                    judged[uid] = extender.passed.get(uid, frozenset()), message
        if judged.keys() == uids:
            return judged
        if time.monotonic() > deadline:
            pytest.fail(f"kube-scheduler judged {len(judged)} of {len(uids)} pods")
        await asyncio.sleep(0.1)


def _profile(left_out: str) -> Profile:
    profile = next(p for p in profiles() if p.scheduler == names.SCHEDULER)
    plugins = [p for p in profile.plugins if p.name != left_out]
    return Profile(profile.scheduler, plugins, profile.weights)


def _evaluation(engine: Engine, uid: str, profile: Profile) -> Evaluation:
    return engine.view.evaluate(engine.view.pods[uid].spec, profile)


def _passed(engine: Engine, evaluation: Evaluation) -> frozenset[str]:
    if evaluation.refusal is not None:
        return frozenset()
    rows = engine.view.cluster.columns.row_of
    return frozenset(name for name, row in rows.items() if evaluation.feasible(row))


def _agree(message: str, mine: Evaluation) -> bool:
    """Return whether kube-scheduler's message has the same reasons, for as many nodes each."""
    told = message.partition(": ")[2].removesuffix(".")
    if NARROWED in told or not told[:1].isdigit():
        # It did not look at all nodes, or at none since it refused the pod as such: a claim is
        # missing, say. Ours goes from node to node.
        return True
    counted = (part.split(" ", 1) for part in told.split(", "))
    return _counted(mine) == {text: int(count) for count, text in counted if text != REFUSAL}


def _counted(evaluation: Evaluation) -> dict[str, int]:
    """Return the reasons of ours with the number of nodes of each."""
    counts: Counter[str] = Counter()
    for _, reason, count in evaluation.refusals()[1]:
        counts[reason.text] += count
    return dict(counts)


def _told(
    random: RandomCluster,
    probe: Manifest,
    engine: Engine,
    mine: Evaluation,
    theirs: frozenset[str],
    said: str,
) -> str:
    """Tell a difference so that it can be understood: the pod, a node, and what each says."""
    ours = _passed(engine, mine)
    name = min(ours ^ theirs)
    node = next(n for n in random.nodes if n["metadata"]["name"] == name)
    here = [p for p in random.bound if p["spec"]["nodeName"] == name]
    row = engine.view.cluster.columns.row_of[name]
    everywhere = slice(0, engine.view.cluster.columns.n)
    why = mine.refusal or [
        f"{plugin}: {reason.text}"
        for plugin, compiled in mine._filters
        for reason, mask in compiled.reasons(everywhere)
        if mask[row]
    ]
    lines = [
        f"node {name}: {'only kube-scheduler' if name in theirs else 'only ours'} takes it",
        f"only kube-scheduler takes {sorted(theirs - ours)}, only ours {sorted(ours - theirs)}",
        f"ours says: {why}",
        f"kube-scheduler says: {said}",
        f"pod: {json.dumps(probe)}",
        f"node: {json.dumps(node)}",
        f"pods there: {json.dumps(here)}",
    ]
    return "\n".join(lines)
