"""Cached columns decide as a plain scan of all nodes does, whatever came before."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus
from alnair.model.nodes import Gpu, Image, Node, Taint
from alnair.model.workload import (
    GpuDemand,
    HostPort,
    NodeAffinity,
    PodSpec,
    Preference,
    Requirement,
    Term,
    Toleration,
)
from alnair.scheduler.framework import evaluation_cache
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.nodes import columns
from kit import invariants, make
from kit.oracles.evaluation import Held, Oracle, connection, gpus_of

NODES = 24
VALUES = ("a", "b", "10", "-3", "x")
UDP = (HostPort(80, "UDP"), HostPort(81))
IMAGES = (Image(("a:1", "a:latest"), 300 * 2**20), Image(("a:1",), 2**30), Image(("big:1",), 2**31))
taints = st.lists(
    st.builds(
        Taint,
        st.sampled_from(("gpu", "old")),
        st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
        st.sampled_from(("", "v")),
    ),
    max_size=2,
    unique=True,
)
labels = st.dictionaries(st.sampled_from(("zone", "size")), st.sampled_from(VALUES), max_size=2)
tolerations = st.lists(
    st.builds(
        Toleration,
        st.sampled_from(("", "gpu", "old", "node.kubernetes.io/unschedulable")),
        st.sampled_from(("Exists", "Equal", "Lt")),
        st.sampled_from(("", "v")),
        st.sampled_from(("", "NoSchedule", "PreferNoSchedule")),
    ).filter(lambda t: t.operator != "Lt"),
    max_size=2,
)
requirements = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from(("zone", "size", "new")),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from(VALUES[:3]), min_size=1, max_size=2).map(tuple),
    ),
    st.builds(
        Requirement,
        st.sampled_from(("zone", "new")),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
    st.builds(
        Requirement,
        st.sampled_from(("size", "zone")),
        st.sampled_from(("Gt", "Lt")),
        st.sampled_from((("5",), ("0",), ("10",))),
    ),
)
fields = st.builds(
    Requirement,
    st.just("metadata.name"),
    st.sampled_from(("In", "NotIn")),
    st.sampled_from((("n0",), ("n3",))),
)
terms = st.builds(
    Term,
    st.lists(requirements, max_size=2).map(tuple),
    st.lists(fields, max_size=1).map(tuple),
)
affinities = st.one_of(
    st.none(),
    st.builds(
        NodeAffinity,
        st.one_of(st.none(), st.lists(terms, min_size=1, max_size=2).map(tuple)),
        st.lists(st.builds(Preference, st.integers(1, 100), terms), max_size=2).map(tuple),
    ),
)
gpu_demands = st.sampled_from(
    (
        {},
        {},
        {"whole": 1},
        {"whole": 2, "models": "T4"},
        {"slice_mib": 8192, "compute": 40},
        {"slice_mib": 8192, "compute": 60, "soft": True},
        {"slice_mib": 64},
        {"slice_mib": 20480, "compute": 50, "models": "A100"},
        {"whole": 2},
        {
            "containers": [
                ContainerGpus("first", {names.GPU: 2}, init=True),
                ContainerGpus("a", {names.GPU: 1}),
                ContainerGpus("b", {names.GPU: 1}),
            ]
        },
        {"whole": 1, "weights": "T4=70,A100=20"},
        {"whole": 2, "models_not": "T4", "weights": "A100=1"},
        {"slice_mib": 8192, "models_not": "A100"},
        {"slice_mib": 4096, "weights": "A100=5"},
        {
            "containers": [
                ContainerGpus("a", {names.GPU: 1}),
                ContainerGpus("b", {names.VGPU_MEMORY: 4096, names.VGPU_COMPUTE: 30}),
            ]
        },
    )
)
#: Pods that most nodes can take, alike often enough to be met again.
modest = st.builds(
    lambda gpu, cpu: make.spec(**gpu, cpu=cpu), gpu_demands, st.sampled_from((0, 300))
)
picky = st.builds(
    lambda gpu, **rest: make.spec(**gpu, **rest),
    gpu=gpu_demands,
    cpu=st.sampled_from((0, 100, 700)),
    memory=st.sampled_from((0, make.GIB, 3 * make.GIB)),
    selector=st.one_of(st.just({}), st.dictionaries(st.just("zone"), st.sampled_from("ab"))),
    affinity=affinities,
    tolerations=tolerations,
    node_name=st.sampled_from(("", "", "", "n1")),
    extended=st.sampled_from(({}, {}, {"example.com/fpga": 1}, {"never.com/seen": 1})),
    ports=st.sampled_from(((), (), (HostPort(80),), (HostPort(80, address="10.0.0.1"),), UDP)),
    images=st.sampled_from(((), (), ("a:1",), ("a:1", "big:1"), ("nowhere:1",))),
)

specs = st.one_of(modest, picky)


def linked_or_not(count: int) -> st.SearchStrategy[int | list[Gpu]]:
    linked = make.linked("linked", count, 2, memory_mib=24576)
    return st.sampled_from((count, linked))


images = st.lists(st.sampled_from(IMAGES), unique_by=lambda i: i.names[0], max_size=2)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    node = make.node(
        f"n{draw(st.integers(0, NODES + 1))}",
        cpu=draw(st.sampled_from((0, 1000, 3000))),
        memory=draw(st.sampled_from((4, 8))) * make.GIB,
        pods=draw(st.sampled_from((3, 10))),
        gpus=draw(st.sampled_from((0, 1, 3)).flatmap(linked_or_not)),
        model=draw(st.sampled_from(("T4", "A100"))),
        gpu_memory=24576,
        factor=draw(st.sampled_from((1.0, 1.0, 1.5))),
        nameless_gpus=draw(st.sampled_from((0, 0, 2))),
        labels=draw(labels),
        taints=draw(taints),
        unschedulable=draw(st.booleans()) and draw(st.booleans()),
        problem=draw(st.sampled_from(("", "", "", "unreadable"))),
        extended=draw(st.sampled_from(({}, {"example.com/fpga": 2}))),
        images=draw(images),
    )
    sick = draw(st.sampled_from(((), (), (0,), (0, 2))))
    return make.unhealthy(node, *sick) if node.gpus else node


class Columnar(RuleBasedStateMachine):
    """Nodes and pods come and go; the same is done to the columns and to the oracle."""

    @initialize(which=st.sampled_from((0, 1, 2)), seed=st.integers(-5, 5), soft=st.booleans())
    def begin(self, which: int, seed: int, soft: bool) -> None:
        # With soft taints one row may change the scores of all, without them none does.
        self.soft = soft
        self.profile = profiles()[which]
        self.tightest = which != 2
        self.accounts = Accounts(seed)
        self.evaluations = Evaluations(self.accounts.cluster)
        self.oracle = Oracle(
            seed,
            strategy=("LeastAllocated", "MostAllocated", "LeastAllocated")[which],
            gpu_nodes_in_order=which == 0,
            even=which == 2,
            images=which != 1,
            packs=which != 2,
            smallest_first=which == 1,
            nvlink_only=which == 0,
            break_ties=((), ("fit", "links"), ("fit", "even", "images"))[which],
        )
        self.count = 0
        self.seen: list[PodSpec] = []
        for number in range(NODES):  # so many that single changes are followed row by row
            self.put_node(
                make.node(
                    f"n{number}",
                    cpu=2000 + 500 * (number % 3),
                    gpus=number % 4 if number % 2 else 0,
                    model=("T4", "A100")[number % 3 == 0],
                    gpu_memory=24576,
                    factor=1.5 if number % 5 == 1 else 1.0,
                    labels={"zone": VALUES[number % 2], "size": VALUES[number % 5]},
                    taints=[Taint("old", "PreferNoSchedule")] * (number % 7 == 0),
                )
            )

    @rule(node=nodes())
    def put_node(self, node: Node) -> None:
        old = self.oracle.nodes.get(node.name)
        if old is not None and self.oracle.on(old) and gpus_of(old) != gpus_of(node):
            return  # where GPUs are counted after they changed is tested on its own
        if not self.soft:
            hard = tuple(t for t in node.taints if t.effect != "PreferNoSchedule")
            node = msgspec.structs.replace(node, taints=hard)
        self.oracle.nodes[node.name] = node
        self.accounts.put_node(node)

    @precondition(lambda self: self.oracle.nodes)
    @rule(data=st.data())
    def remove_empty_node(self, data: st.DataObject) -> None:
        empty = [n for n in self.oracle.nodes.values() if not self.oracle.on(n)]
        if empty:
            name = data.draw(st.sampled_from(sorted(n.name for n in empty)))
            del self.oracle.nodes[name]
            self.accounts.remove_node(name)

    @rule(spec=specs)
    def ask(self, spec: PodSpec) -> None:
        self.seen = [*self.seen[-5:], spec]
        self.compare(spec)

    @rule(spec=specs, again=st.booleans(), data=st.data())
    def place(self, spec: PodSpec, again: bool, data: st.DataObject) -> None:
        if again and self.seen:
            spec = data.draw(st.sampled_from(self.seen))
        want = self.oracle.best(spec)
        self.count += 1
        record = Record(make.pod(f"p{self.count}", spec))
        self.accounts.records[record.pod.uid] = record
        statement = Statement(self.accounts, self.evaluations, 0.0)
        refused = statement.place(record, self.profile)
        assert (record.node or None) == want
        assert (refused is None) == (want is not None)
        if want is None:
            del self.accounts.records[record.pod.uid]
            return
        self.hold(record)

    def hold(self, record: Record) -> None:
        node = self.oracle.nodes[record.node]
        whole = sorted(b.slot for b in record.bookings if b.whole)
        shared = [b.slot for b in record.bookings if not b.whole]
        demand = record.pod.spec.gpu
        if demand:
            slot = shared[0] if shared else None
            choices = self.oracle.gpu_choices(demand, node)
            assert (slot, tuple(whole)) in choices
            if slot is not None:  # the tightest or the emptiest of those that can be had
                sign = 1 if self.tightest else -1
                room = [
                    (
                        0 if self.tightest else -self.oracle.level(node, s),
                        sign * self.oracle.compute_left(node, s),
                        sign * self.oracle.memory_left(node, s),
                        self.missed(demand, node, s),
                        s,
                    )
                    for s in {s for s, _ in choices if s is not None}
                ]
                assert slot == min(room)[-1]
            if node.gpus and len(whole) > 1 and not demand.memory_mib:  # the best connected
                liked = dict(demand.weights)
                free = self.oracle.free(demand, node)
                top = sorted((liked.get(node.gpus[i].model, 0) for i in free), reverse=True)
                free = [i for i in free if liked.get(node.gpus[i].model, 0) >= top[len(whole) - 1]]
                sets = itertools.combinations(free, len(whole))
                best = max(connection(node.gpus, s) for s in sets)
                assert connection(node.gpus, whole) == best
        held = Held(record.pod.spec, whole, shared[0] if shared else None)
        self.oracle.held.setdefault(node.name, {})[record.pod.uid] = held

    def missed(self, demand: GpuDemand, node: Node, slot: int) -> int:
        """What opening a free GPU costs: links to other free ones, or with those in use."""
        gpus, free = gpus_of(node), self.oracle.free(demand, node)
        if slot not in free:
            return 0
        if self.tightest:
            return -connection(gpus, [s for s in free if s != slot])[1]
        held = [
            s
            for s in range(len(gpus))
            if self.oracle.tenants(node, s) or self.oracle.holders(node, s)
        ]
        return connection(gpus, [*held, slot])[1] - connection(gpus, held)[1]

    @precondition(lambda self: any(self.oracle.held.values()))
    @rule(data=st.data())
    def unplace(self, data: st.DataObject) -> None:
        on = {uid: node for node, held in self.oracle.held.items() for uid in held}
        uid = data.draw(st.sampled_from(sorted(on)))
        del self.oracle.held[on[uid]][uid]
        self.accounts.release(self.accounts.records.pop(uid), State.FINISHED)

    @rule(spec=specs, count=st.integers(1, 4))
    def try_and_roll_back(self, spec: PodSpec, count: int) -> None:
        """A rolled back statement leaves everything as it was."""
        before = self.snapshot()
        statement = Statement(self.accounts, self.evaluations, 0.0)
        for number in range(count):
            statement.place(Record(make.pod(f"try{number}", spec)), self.profile)
        statement.rollback()
        assert self.snapshot() == before

    def snapshot(self) -> list[object]:
        c, d = self.accounts.columns, self.accounts.devices
        arrays = (c.free, c.scored, d.slice_memory, d.compute_free, d.hard_free, d.whole_free)
        known = {name: c.free[column, : c.n].tolist() for name, column in c.resources.items()}
        return [{k: v for k, v in known.items() if any(v)}, *(a.tolist() for a in arrays[1:])]

    @invariant()
    def the_books_are_right(self) -> None:
        if hasattr(self, "accounts"):
            invariants.check_books(self.accounts)
            for spec in self.seen[-2:]:
                self.compare(spec)

    def compare(self, spec: PodSpec) -> None:
        evaluation = self.evaluations.of(spec, self.profile)
        row = evaluation.best() if evaluation.refusal is None else None
        node = None if row is None else self.accounts.columns.nodes[row]
        assert (node.name if node else None) == self.oracle.best(spec)
        if evaluation.refusal is None:
            fresh = Evaluation(spec, self.profile, self.accounts.cluster)
            fresh.refresh()
            assert (evaluation.rank == fresh.rank).all()
            self.compare_needs(spec, fresh)

    def compare_needs(self, spec: PodSpec, evaluation: Evaluation) -> None:
        """What plugins say that a pod needs is there wherever their filters pass it."""
        passed = np.flatnonzero(evaluation.possible())
        for plugin in self.profile.quick:
            for what, amount in plugin.needs(spec):
                there = plugin.amount(what, passed, self.accounts.cluster)
                assert (there >= amount).all()
                one = [
                    plugin.amount(what, slice(row, row + 1), self.accounts.cluster).item()
                    for row in passed.tolist()
                ]
                assert there.tolist() == one


@contextmanager
def small_limits() -> Iterator[None]:
    """Logs overflow and evaluations are dropped all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_LOG_LIMIT", 4)
        patch.setattr(evaluation_cache, "kept", lambda nodes: 4)
        yield


def run(machine: type[RuleBasedStateMachine], examples: int) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            phases=(Phase.reuse, Phase.generate),  # shrinking takes minutes, and tells little more
        ),
    )


def test_any_history_gives_the_same_decisions_as_a_full_scan() -> None:
    run(Columnar, 50)


def test_so_it_does_when_logs_overflow_and_evaluations_are_dropped() -> None:
    with small_limits():
        run(Columnar, 25)


def test_many_nodes_keep_their_rows_and_ties_while_the_columns_grow() -> None:
    accounts = Accounts(3)
    cached = Evaluations(accounts.cluster)
    oracle = Oracle(3)
    spec, profile = make.spec(selector={"zone": "a"}), profiles()[0]
    for number in range(200):
        node = make.node(f"n{number}", labels={"zone": "ab"[number % 2]}, gpus=number % 3)
        oracle.nodes[node.name] = node
        accounts.put_node(node)
        if number % 7 == 3:
            gone = f"n{number // 2}"
            if oracle.nodes.pop(gone, None):
                accounts.remove_node(gone)
        row = cached.of(spec, profile).best()
        found = accounts.columns.nodes[row] if row is not None else None
        assert (found.name if found else None) == oracle.best(spec)
    invariants.check_books(accounts)
    changed = msgspec.structs.replace(oracle.nodes["n198"], unschedulable=True)
    assert accounts.put_node(changed)
    assert not accounts.put_node(changed)
