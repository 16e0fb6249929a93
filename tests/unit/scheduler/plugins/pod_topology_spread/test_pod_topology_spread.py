"""Topology spread from columns is topology spread node by node, whatever changed in between."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.nodes import Node, Taint
from alnair.model.workload import (
    LabelSelector,
    NodeAffinity,
    Pod,
    Requirement,
    SpreadConstraint,
    Term,
    Toleration,
)
from alnair.scheduler.framework.arguments import ArgumentError, made
from alnair.scheduler.framework.extension_points import Reason
from alnair.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.pods.pod_classes import Classes
from kit import make
from kit.oracles.pod_topology_spread import HOSTNAME, SpreadOracle

ZONE = "zone"
names = st.sampled_from([f"n{i}" for i in range(7)])
keys = st.sampled_from((ZONE, HOSTNAME, "rack"))
labels = st.dictionaries(st.sampled_from(("app", "rev")), st.sampled_from("ab"), max_size=2)
selectors = st.sampled_from(
    (
        None,
        LabelSelector(),
        make.selecting(app="a"),
        make.selecting(app="b", rev="a"),
        LabelSelector((Requirement("app", "Exists"),)),
    )
)
constraints = st.builds(
    SpreadConstraint,
    max_skew=st.integers(1, 3),
    topology_key=keys,
    hard=st.booleans(),
    selector=selectors,
    min_domains=st.sampled_from((None, 1, 3)),
    honor_affinity=st.booleans(),
    honor_taints=st.booleans(),
    match_label_keys=st.sampled_from(((), ("rev",), ("rev", "absent"))),
)
affinities = st.sampled_from(
    (None, NodeAffinity((Term((Requirement("rack", "In", ("r0", "r1")),)),)))
)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    name = f"n{draw(st.integers(0, 6))}"
    where = {
        ZONE: draw(st.sampled_from(("", "z0", "z1", "z2"))),
        "rack": draw(st.sampled_from(("", "r0", "r1", "r2"))),
    }
    return make.node(
        name,
        labels={k: v for k, v in where.items() if v},
        taints=draw(st.sampled_from(((), (Taint("old", "NoSchedule"),)))),
    )


@st.composite
def bound_pods(draw: st.DrawFn) -> Pod:
    number = draw(st.integers(0, 11))
    return make.pod(
        f"p{number}",
        namespace=draw(st.sampled_from(("default", "default", "other"))),
        uid=f"uid-{number}",
        labels=draw(labels),
        node=f"n{draw(st.integers(0, 6))}",
        deleting=draw(st.sampled_from((False, False, False, True))),
    )


@st.composite
def incoming_pods(draw: st.DrawFn) -> Pod:
    asked = make.spec(
        spread=draw(st.lists(constraints, min_size=1, max_size=3)),
        selector=draw(st.sampled_from(({}, {}, {ZONE: "z0"}))),
        affinity=draw(affinities),
        tolerations=draw(st.sampled_from(((), (Toleration("old", "Exists"),)))),
    )
    return make.pod("new", asked, labels=draw(labels))


class Pair:
    """The same cluster in columns and in dictionaries."""

    def __init__(self, pod: Pod) -> None:
        self.accounts = Accounts()
        self.pod = pod
        self.nodes: dict[str, Node] = {}
        self.on: dict[str, list[Pod]] = {}
        classes = Classes()
        classes.notice(pod.spec)
        spec = classes.of(pod)
        plugin = PodTopologySpread()
        self.filter = plugin.filter(spec, self.accounts.cluster)
        self.score = plugin.score(spec, self.accounts.cluster)

    def put(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.accounts.put_node(node)

    def remove(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.accounts.remove_node(name)

    def place(self, pod: Pod) -> None:
        """Put a pod on its node; one that is there goes away first."""
        if old := self.accounts.records.pop(pod.uid, None):
            self.on[old.pod.node].remove(old.pod)
            self.accounts.release(old, State.FINISHED)
        record = self.accounts.records[pod.uid] = Record(pod)
        self.accounts.place(record, pod.node, State.BOUND, 0.0)
        self.on.setdefault(pod.node, []).append(pod)

    def compare(self, feasible: Sequence[str] = ()) -> None:
        oracle = SpreadOracle(self.pod, self.nodes.values(), self.on)
        assert self.refusals() == oracle.refusals()
        some = sorted(self.nodes.keys() & set(feasible)) or sorted(self.nodes)
        assert self.scores(some) == oracle.scores([self.nodes[n] for n in some])

    def refusals(self) -> dict[str, str]:
        if self.filter is None:
            return dict.fromkeys(self.nodes, "")
        rows = slice(0, self.accounts.columns.n)
        reasons: list[tuple[Reason, Any]] = list(self.filter.reasons(rows))
        told = {
            name: " ".join(reason.text for reason, mask in reasons if mask[row])
            for name, row in self.accounts.columns.row_of.items()
        }
        for name, row in self.accounts.columns.row_of.items():
            assert self.filter(rows)[row] == self.filter(slice(row, row + 1))[0] == (not told[name])
        return told

    def scores(self, feasible: Sequence[str]) -> dict[str, int]:
        if self.score is None:
            return {}
        mask = np.zeros(self.accounts.columns.n, bool)
        rows = [self.accounts.columns.row_of[name] for name in feasible]
        mask[rows] = True
        assert self.score.normalize is not None
        found = self.score.normalize(self.score.over(mask), mask)
        return {name: found[row] for name, row in zip(feasible, rows, strict=True)}


@given(
    pod=incoming_pods(),
    start=st.lists(nodes(), min_size=2, max_size=7),
    changes=st.lists(
        st.one_of(nodes(), bound_pods(), bound_pods(), bound_pods(), names), max_size=14
    ),
    feasible=st.sets(names),
)
def test_any_history_gives_the_verdicts_and_scores_of_the_oracle(
    pod: Pod, start: list[Node], changes: list[Node | Pod | str], feasible: set[str]
) -> None:
    pair = Pair(pod)
    for node in start:
        pair.put(node)
    pair.compare(sorted(feasible))
    for change in changes:
        match change:
            case Node():
                pair.put(change)
            case Pod():
                pair.place(change)
            case _:
                pair.remove(change)
    pair.compare(sorted(feasible))


def test_a_deleted_node_takes_its_domain_with_it() -> None:
    asked = make.spec(spread=[make.spread_over(ZONE, make.selecting(app="a"))])
    pair = Pair(make.pod("new", asked, labels={"app": "a"}))
    for number in range(3):
        pair.put(make.node(f"n{number}", labels={ZONE: f"z{number}"}))
    for number in range(2):
        pair.place(make.pod(f"p{number}", labels={"app": "a"}, node=f"n{number}"))
    assert pair.refusals()["n0"]
    pair.remove("n2")
    assert not pair.refusals()["n0"]


def test_pods_that_say_nothing_have_nothing_to_filter_or_score() -> None:
    pair = Pair(make.pod())
    assert pair.filter is None
    assert pair.score is None


ONE: dict[str, Any] = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
}


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"defaultingType": "system"}, "defaultingType"),
        ({"defaultConstraints": [ONE]}, "leave them out"),
        ({"defaultingType": "List", "defaultConstraints": [ONE, ONE]}, "twice"),
        ({"defaultingType": "List", "defaultConstraints": [{**ONE, "maxSkew": 0}]}, "at least 1"),
        ({"defaultingType": "List", "defaultConstraints": [{**ONE, "topologyKey": ""}]}, "label"),
        ({"defaultingType": "List", "defaultConstraints": [{**ONE, "labelSelector": {}}]}, "label"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ArgumentError, match=wrong):
        made(PodTopologySpread, arguments)
