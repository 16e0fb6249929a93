"""Runs a plugin on a few nodes and pods, and checks that it keeps its contract.

What is checked is what the scheduler relies on (`alnair.scheduler.framework.extension_points`): it
caches answers and asks again only for rows that changed, so a plugin that breaks a rule is wrong
only sometimes, and nowhere near the place.
"""

import random
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from alnair.model.nodes import Node, Taint
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import (
    FilterPlugin,
    Plugin,
    Profile,
    QueueSortPlugin,
    ScorePlugin,
)
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.state.pods.pod_classes import Classes
from alnair.testing.plugin_checks import (
    ContractError,
    check_filter,
    check_score,
    feasible,
    normalized,
)

_NAME = "bench"
#: Nodes of a check at least.
_LEAST_NODES = 24
_TAINT = Taint("bench.alnair.io/taint", "NoSchedule")

__all__ = ["ContractError", "PluginBench"]


class PluginBench:
    """A plugin on its own, beside the books of a real engine.

    Args:
        plugin: what is tested.
        nodes: of the cluster.
        pods: that are on nodes already.
    """

    def __init__(self, plugin: Plugin, nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> None:
        self.plugin = plugin
        sort = [] if isinstance(plugin, QueueSortPlugin) else [PrioritySort()]
        self._profile = Profile(_NAME, [plugin, *sort])
        self._engine = Engine([self._profile])
        self._view = self._engine.view
        #: As the engine's: what selectors of any pod seen so far look at tells pods apart.
        self._classes = Classes()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        for node in nodes:
            self.put(node)
        for pod in pods:
            self.bind(pod, pod.node)

    def put(self, node: Node) -> None:
        """Add a node, or change it."""
        self._nodes[node.name] = node
        self._tell(events.NodeChanged(node))

    def bind(self, pod: Pod, node: str) -> None:
        """Let a pod be on a node."""
        pod = msgspec.structs.replace(pod, node=node, scheduler=_NAME)
        self._pods[pod.uid] = pod
        self._classes.notice(pod.spec)
        self._tell(events.PodChanged(pod))

    def remove(self, pod: Pod) -> None:
        """Let a pod be gone."""
        del self._pods[pod.uid]
        self._tell(events.PodGone(pod.uid))

    def refused(self, pod: Pod) -> dict[str, list[str]]:
        """Return the nodes that the filter refuses, and its reasons for each."""
        spec, columns = self._class(pod), self._view.cluster.columns
        if not isinstance(self.plugin, FilterPlugin):
            return {}
        compiled = self.plugin.filter(spec, self._view.cluster)
        if compiled is None:
            return {}
        found: dict[str, list[str]] = {}
        for reason, mask in compiled.reasons(slice(0, columns.n)):
            for row in np.flatnonzero(mask & columns.alive[: columns.n]):
                node = columns.nodes[row]
                assert node is not None
                found.setdefault(node.name, []).append(reason.text)
        return found

    def scores(self, pod: Pod) -> dict[str, float]:
        """Return the scores (0-100) of the nodes that the filter accepts; empty without a score."""
        spec, columns = self._class(pod), self._view.cluster.columns
        if not isinstance(self.plugin, ScorePlugin):
            return {}
        cluster = self._view.cluster
        compiled = self.plugin.score(spec, cluster)
        if compiled is None:
            return {}
        will_do = feasible(self.plugin, spec, cluster)
        values = normalized(compiled, will_do, columns.n)
        return {
            node.name: float(values[row])
            for row in np.flatnonzero(will_do)
            if (node := columns.nodes[row]) is not None
        }

    def best(self, pod: Pod) -> str | None:
        """Return the node that the plugin alone would choose."""
        evaluation = self._view.evaluate(self._class(pod), self._profile)
        row = None if evaluation.refusal is not None else evaluation.best()
        node = None if row is None else self._view.cluster.columns.nodes[row]
        return None if node is None else node.name

    def check(self, pods: Sequence[Pod], *, seed: int = 0, rounds: int = 100) -> None:
        """Check the contract for these pods, after each of so many random changes of a cluster.

        The cluster is a copy, enlarged by copies of its nodes; the bench stays as it is.

        Raises:
            ContractError: the plugin breaks it; says how, and what to do.
        """
        chance = random.Random(seed)
        copy = PluginBench(self.plugin, self._many(), self._pods.values())
        for _ in range(rounds):
            copy._change(pods, chance)
            for pod in pods:
                copy._check(copy._class(pod), chance)

    def _many(self) -> Iterable[Node]:
        """Return the nodes, and copies of them: of a handful the scheduler caches nothing."""
        nodes = list(self._nodes.values())
        for i in range(max(_LEAST_NODES, len(nodes)) if nodes else 0):
            node, number = nodes[i % len(nodes)], i // len(nodes)
            name = f"{node.name}-{number}" if number else node.name
            yield msgspec.structs.replace(node, name=name)

    def _check(self, spec: PodSpec, chance: random.Random) -> None:
        cluster = self._view.cluster
        if isinstance(self.plugin, FilterPlugin):
            check_filter(self.plugin, spec, cluster, chance)
        if isinstance(self.plugin, ScorePlugin):
            check_score(self.plugin, spec, cluster, chance)
        kept = self._view.evaluate(spec, self._profile)
        fresh = Evaluation(spec, self._profile, cluster)
        if fresh.refusal is not None:
            return
        fresh.refresh()
        for row in np.flatnonzero(kept.rank != fresh.rank):
            node = cluster.columns.nodes[row]
            shown = [e.score(int(row)) if e.rank[row] >= 0 else "no" for e in (kept, fresh)]
            raise ContractError(
                f"{self.plugin.name}: the cached answer for node {node.name if node else row} is"
                f" {shown[0]}, and computed anew it is {shown[1]}: `depends` must name all that the"
                " function reads, nothing of a row may be read while compiling, and an observer's"
                " `learn` must say when it has learned something"
            )

    def _change(self, pods: Sequence[Pod], chance: random.Random) -> None:
        kind = chance.randrange(6)
        if kind == 0 and self._pods:
            self.remove(chance.choice(list(self._pods.values())))
        elif kind == 1 and self._nodes:
            self._alter(chance.choice(list(self._nodes.values())), chance)
        elif kind == 2 and len(self._nodes) > 1 and chance.random() < 0.3:
            name = chance.choice(list(self._nodes))
            del self._nodes[name]
            self._tell(events.NodeGone(name))
        elif kind == 3 and self._nodes and chance.random() < 0.3:
            like = chance.choice(list(self._nodes.values()))
            # What is compiled must cope with a node, and with values, that came later.
            name = f"new-{chance.randrange(10**9)}"
            labels = {key: f"{value}0" for key, value in like.labels.items()}
            self.put(msgspec.structs.replace(like, name=name, labels=labels, gpus=()))
        elif self._nodes and pods:
            like_pod = chance.choice(list(pods))
            # Some nodes fill up: much changes only there.
            node = chance.choice(list(self._nodes)[: chance.choice((3, None))])
            for _ in range(chance.randrange(1, 9)):
                name = f"random-{chance.randrange(10**9)}"
                self.bind(msgspec.structs.replace(like_pod, uid=name, name=name), node)

    def _alter(self, node: Node, chance: random.Random) -> None:
        labels = dict(node.labels)
        if labels and chance.random() < 0.5:
            # Values wander between nodes, so that they stay ones that the plugin can read.
            key = chance.choice(list(labels))
            others = [n.labels[key] for n in self._nodes.values() if key in n.labels]
            labels[key] = chance.choice(others)
        changes: dict[str, object] = {"labels": labels}
        if chance.random() < 0.3:
            changes["unschedulable"] = not node.unschedulable
        if chance.random() < 0.3:
            changes["taints"] = () if node.taints else (_TAINT,)
        if chance.random() < 0.3:
            factor = chance.choice((0.5, 2.0))
            changes["allocatable"] = {k: int(v * factor) for k, v in node.allocatable.items()}
        self.put(msgspec.structs.replace(node, **changes))

    def _class(self, pod: Pod) -> PodSpec:
        self._classes.notice(pod.spec)
        return self._classes.of(pod)

    def _tell(self, event: events.Event) -> None:
        self._engine.step([event], 0.0, limit=0)
