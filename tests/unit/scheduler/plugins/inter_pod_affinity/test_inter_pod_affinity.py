"""Inter-pod affinity: columns decide as a plain scan does, whatever came before."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alnair.model.nodes import Node
from alnair.model.workload import LabelSelector, Pod, PodAffinity, PodTerm, Requirement
from alnair.scheduler.framework.arguments import ArgumentError, made
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.nodes.columns import TIES
from alnair.scheduler.state.pods.pod_classes import Classes
from kit import invariants, make
from kit.oracles.inter_pod_affinity import Neighbours

NAMESPACES = ("one", "two", "new")
HARD_WEIGHT = 3

labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
requirements = st.builds(
    Requirement, st.sampled_from("ab"), st.sampled_from(("In", "NotIn")), st.just(("x",))
) | st.builds(
    Requirement,
    st.sampled_from("ab"),
    st.sampled_from(("In", "Exists", "DoesNotExist")),
).map(lambda r: msgspec.structs.replace(r, values=("x", "y")) if r.operator == "In" else r)
selectors = st.builds(LabelSelector, st.lists(requirements, max_size=2).map(tuple))
terms = st.builds(
    PodTerm,
    topology_key=st.sampled_from(("zone", "kubernetes.io/hostname")),
    selector=st.none() | selectors,
    namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=1).map(tuple),
    namespace_selector=st.none() | selectors,
    weight=st.sampled_from((1, 10, 100)),
)
some_terms = st.lists(terms, max_size=2).map(tuple)
affinities = st.none() | st.builds(PodAffinity, some_terms, some_terms, some_terms, some_terms)
pods = st.builds(
    lambda affinity, namespace, labels_: make.pod(
        "pod", make.spec(pod_affinity=affinity), namespace=namespace, labels=labels_
    ),
    affinities,
    st.sampled_from(NAMESPACES),
    labels,
)
zones = st.dictionaries(st.just("zone"), st.sampled_from("123"))


class Cluster:
    """Books and their copy in plain Python."""

    def __init__(self) -> None:
        self.accounts = Accounts()
        self.classes = Classes()
        plugin = made(InterPodAffinity, {"hardPodAffinityWeight": HARD_WEIGHT})
        self.profile = Profile("ours", (PrioritySort(), plugin))
        self.evaluations = Evaluations(self.accounts.cluster)
        self.nodes: dict[str, Node] = {}
        self.placed: list[Record] = []
        self.namespaces: dict[str, Mapping[str, str]] = {}

    def put_node(self, number: int, labels_: Mapping[str, str]) -> None:
        node = self.nodes[f"n{number}"] = make.node(f"n{number}", labels=labels_)
        self.accounts.put_node(node)

    def remove_node(self, number: int) -> None:
        if self.nodes.pop(f"n{number}", None):
            self.accounts.remove_node(f"n{number}")

    def place(self, number: int, pod: Pod) -> None:
        uid = f"{len(self.accounts.records)}"
        pod = msgspec.structs.replace(pod, uid=uid, node=f"n{number}")
        self.classes.notice(pod.spec)
        record = self.accounts.records[uid] = Record(pod)
        self.accounts.place(record, pod.node, State.BOUND, 0.0)
        self.placed.append(record)

    def take_away(self, number: int) -> None:
        if self.placed:
            record = self.placed.pop(number % len(self.placed))
            self.accounts.release(record, State.FINISHED)

    def set_namespace(self, name: str, labels_: Mapping[str, str]) -> None:
        self.namespaces[name] = labels_
        value = tuple(sorted(labels_.items()))
        self.accounts.objects.put("Namespace", ("", name), value)

    def check(self, pod: Pod) -> None:
        self.classes.notice(pod.spec)
        evaluation = self.evaluations.of(self.classes.of(pod), self.profile)
        neighbours = Neighbours(self.nodes, [r.pod for r in self.placed], self.namespaces)
        refusals = {n.name: neighbours.refusal(pod, n) for n in self.nodes.values()}
        feasible = [node for node in self.nodes.values() if not refusals[node.name]]
        for name, row in self.accounts.columns.row_of.items():
            assert evaluation.feasible(row) == (not refusals[name]), (name, refusals[name])
        counted = {reason.text: count for _, reason, count in evaluation.refusals()[1]}
        expected = [r for r in refusals.values() if r]
        assert counted == {text: expected.count(text) for text in expected}
        if feasible:
            for name, score in neighbours.scores(pod, feasible, HARD_WEIGHT).items():
                rank = evaluation.rank[self.accounts.columns.row_of[name]]
                assert rank // TIES == score, name


CHANGES: Mapping[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "put_node": st.tuples(st.integers(0, 4), zones),
    "remove_node": st.tuples(st.integers(0, 4)),
    "place": st.tuples(st.integers(0, 4), pods),
    "take_away": st.tuples(st.integers(0, 10)),
    "set_namespace": st.tuples(st.sampled_from(NAMESPACES[:2]), labels),
}
changes = st.sampled_from(
    ("put_node", "put_node", "place", "place", "place", "take_away", "set_namespace", "remove_node")
).flatmap(lambda what: st.tuples(st.just(what), CHANGES[what]))


@settings(deadline=None)
@given(st.lists(changes, min_size=4, max_size=20), st.lists(pods, min_size=1, max_size=3))
def test_rules_and_scores_are_those_of_a_scan_after_any_changes(
    history: list[tuple[str, tuple[Any, ...]]], probes: list[Pod]
) -> None:
    cluster = Cluster()
    for number in range(3):
        cluster.put_node(number, {"zone": str(number % 2)})
    for what, arguments in history:
        change: Callable[..., None] = getattr(cluster, what)
        change(*arguments)
        for probe in probes:
            cluster.check(probe)
    invariants.check_pods(cluster.accounts)


def test_terms_of_departed_pods_are_forgotten_in_time() -> None:
    cluster = Cluster()
    cluster.put_node(0, {})
    for number in range(2000):
        apart = PodAffinity(anti_required=(make.term(app=f"a{number}"),))
        cluster.place(0, make.pod(asked=make.spec(pod_affinity=apart), labels={"app": "a"}))
        cluster.take_away(0)
    held = cluster.accounts.pods.held("anti_required")
    assert not list(held)
    assert len(held._terms) < 300
    assert len(held._by_pair) < 300


def test_terms_held_on_many_rows_count_as_those_on_few() -> None:
    cluster = Cluster()
    apart = PodAffinity(anti_required=(make.term("kubernetes.io/hostname", app="a"),))
    pod = make.pod(asked=make.spec(pod_affinity=apart), labels={"app": "a"})
    for number in range(150):
        cluster.put_node(number, {})
    for number in range(149):
        cluster.place(number, pod)
        if number % 10 == 0:
            cluster.check(pod)
    cluster.check(pod)
    while cluster.placed:
        cluster.take_away(7)
        if len(cluster.placed) % 10 == 0:
            cluster.check(pod)


def test_weights_out_of_range_are_refused() -> None:
    with pytest.raises(ArgumentError, match="write a number from 0 to 100"):
        made(InterPodAffinity, {"hardPodAffinityWeight": 101})


def test_malformed_selectors_are_refused_in_the_words_of_kubernetes() -> None:
    odd = PodTerm("zone", LabelSelector((Requirement("app", "Gt", ("1",)),)))
    empty = PodTerm("zone", LabelSelector(), namespace_selector=odd.selector)
    valid = make.term(app="a")
    affinity = PodAffinity(required=(valid,), anti_required=(odd, odd), preferred=(empty,))
    refusal = InterPodAffinity().pre_filter(make.spec(pod_affinity=affinity))
    says = '"Gt" is not a valid label selector operator'
    assert refusal
    assert refusal.text == (
        f"parsing pod: [requiredAntiAffinityTerms: {says}, preferredAffinityTerms: {says}]"
    )
    assert InterPodAffinity().pre_filter(make.spec(pod_affinity=PodAffinity((valid,)))) is None
