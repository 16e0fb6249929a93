"""What is said to help does help, and what is counted is so."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import PodWire
from alnair.model import names
from alnair.model.action import Evict
from alnair.model.nodes import Node, Taint
from alnair.model.workload import (
    HostPort,
    NodeAffinity,
    PodAffinity,
    PodSpec,
    Requirement,
    Term,
    Toleration,
)
from alnair.scheduler.advice import change_search as module
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.scheduler.advice.diagnosis import Change, ChangePair, Diagnosis
from alnair.scheduler.advice.relaxations import Relaxation
from alnair.scheduler.advice.trial import Verdict
from kit import invariants, make
from kit.oracles.evaluation import Held, Oracle
from kit.oracles.inter_pod_affinity import Neighbours
from kit.world import World

zones = st.dictionaries(st.just("zone"), st.sampled_from("ab"))
taints = st.lists(
    st.builds(Taint, st.just("gpu"), st.sampled_from(("NoSchedule", "NoExecute")), st.just("v")),
    max_size=1,
)
nodes = st.builds(
    make.node,
    st.sampled_from(("n0", "n1", "n2", "n3", "n4")),
    cpu=st.sampled_from((500, 2000, 4000)),
    memory=st.sampled_from((1, 4)).map(lambda g: g * make.GIB),
    gpus=st.sampled_from((0, 0, 1, 4)),
    model=st.sampled_from(("T4", "A100")),
    gpu_memory=st.just(16384),
    labels=zones,
    taints=taints,
    unschedulable=st.sampled_from((False, False, False, True)),
)
clusters = st.lists(nodes, min_size=1, max_size=5, unique_by=lambda n: n.name)
near_or_apart = st.sampled_from(
    (
        None,
        None,
        PodAffinity(required=(make.term(app="a"),)),
        PodAffinity(anti_required=(make.term(app="a"),)),
        PodAffinity((make.term(app="b"),), (), (make.term("kubernetes.io/hostname", app="a"),)),
    )
)
wishes = st.builds(
    lambda gpu, **rest: make.spec(**gpu, **rest),
    gpu=st.sampled_from(
        (
            {},
            {},
            {"whole": 1},
            {"whole": 6},
            {"whole": 2, "models": "A100"},
            {"slice_mib": 12000, "compute": 60},
            {"slice_mib": 32000, "models": "T4"},
        )
    ),
    cpu=st.sampled_from((100, 1500, 5000)),
    memory=st.sampled_from((1, 6)).map(lambda g: g * make.GIB),
    selector=st.sampled_from(({}, {}, {"zone": "a"}, {"zone": "a", "disk": "ssd"})),
    affinity=st.sampled_from(
        (
            None,
            None,
            NodeAffinity((Term((Requirement("zone", "In", ("b",)),)),)),
            NodeAffinity((Term((Requirement("zone", "Exists"), Requirement("x", "Exists"))),)),
        )
    ),
    tolerations=st.sampled_from(((), (), (Toleration("gpu", "Exists"),))),
    pod_affinity=near_or_apart,
    ports=st.sampled_from(((), (), (HostPort(80),))),
)
labels = st.sampled_from(({}, {"app": "a"}, {"app": "b"}))
neighbours = st.lists(st.tuples(wishes, labels), max_size=6)


class Claims:
    """Every change that is named, with the spec that it was verified with."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[Change, PodSpec]] = []
        self.pairs: list[tuple[ChangePair, PodSpec]] = []
        self._make, self._make_pair = module._change, module._pair
        patch.setattr(module, "_change", self.note)
        patch.setattr(module, "_pair", self.note_pair)

    def note(self, relaxation: Relaxation, verdict: Verdict) -> Change:
        change = self._make(relaxation, verdict)
        self.made.append((change, relaxation.spec))
        return change

    def note_pair(
        self, first: Relaxation, second: Relaxation, verdict: Verdict
    ) -> tuple[float, ChangePair]:
        size, pair = self._make_pair(first, second, verdict)
        self.pairs.append((pair, second.spec))
        return size, pair


def oracle_of(world: World) -> tuple[Oracle, Neighbours]:
    oracle = Oracle()
    oracle.nodes = dict(world.nodes)
    accounts = world.engine._accounts
    placed = []
    for here in accounts.on_row.values():
        for record in here.values():
            placed.append(record.indexed)
            whole = [b.slot for b in record.bookings if b.whole]
            shared = next((b.slot for b in record.bookings if not b.whole), None)
            held = Held(record.pod.spec, whole, shared)
            oracle.held.setdefault(record.node, {})[record.pod.uid] = held
    pods = [world.pods[p.uid] for p in placed]
    return oracle, Neighbours(world.nodes, pods, {})


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(clusters, neighbours, wishes, labels)
def test_every_change_that_is_named_helps_and_an_amount_is_the_largest_that_does(
    monkeypatch: pytest.MonkeyPatch,
    cluster: Sequence[Node],
    others: Sequence[tuple[PodSpec, dict[str, str]]],
    wish: PodSpec,
    mine: dict[str, str],
) -> None:
    world = World(*cluster)
    for number, (asked, theirs) in enumerate(others):
        world.create(make.pod(f"other-{number}", asked, labels=theirs))
    world.settle()
    pod = make.pod("asked", wish, labels=mine)
    world.create(pod)
    world.settle()
    record = find(world.engine.view, "default", "asked")
    assert record is not None
    with monkeypatch.context() as patch:
        claims = Claims(patch)
        told = diagnose(world.engine.view, record, world.now)
    invariants.check(world.engine)
    assert diagnose(world.engine.view, record, world.now) == told, "asking changes nothing"
    if told.stage == "bound":
        assert told.node == world.pod("asked").node
        return
    oracle, around = oracle_of(world)

    def takes(spec: PodSpec, node: Node) -> bool:
        changed = make.pod("asked", spec, labels=mine)
        return oracle.fits(spec, node) and not around.refusal(changed, node)

    assert not any(takes(wish, node) for node in world.nodes.values())
    assert len(claims.made) >= len(told.changes)
    for change, spec in claims.made:
        node = world.nodes[change.node]
        if change.kind == "uncordon":
            assert node.unschedulable
        assert takes(spec, node), change
        if change.kind == "request":
            more = larger(spec, wish)
            assert not any(takes(more, node) for node in world.nodes.values()), change
    assert len(claims.pairs) >= len(told.pairs)
    assert not (told.changes and claims.pairs), "a pair is looked for where no change helps alone"
    for pair, spec in claims.pairs:
        node = world.nodes[pair.node]
        assert takes(spec, node), pair
        assert node.unschedulable or "uncordon" not in pair.kinds
    check_counts(told, len(world.nodes))


def larger(spec: PodSpec, wish: PodSpec) -> PodSpec:
    """Return the spec with one unit more of what it asks less of."""
    asked = dict(wish.requests)
    (resource,) = (name for name, amount in spec.requests if amount != asked[name])
    unit = make.MIB if resource == "memory" else 1
    requests = tuple((n, a + unit if n == resource else a) for n, a in spec.requests)
    return msgspec.structs.replace(spec, requests=requests)


def check_counts(told: Diagnosis, nodes: int) -> None:
    assert told.nodes == nodes
    for each in told.predicates:
        assert 0 <= each.only <= each.nodes <= nodes
        assert each.first <= each.nodes
        if each.first:
            assert f"{each.first} {each.reason}" in told.message
    for near in told.closest:
        assert near.reasons
    times = [len(near.reasons) for near in told.closest]
    assert len(times) == min(nodes, 5)


def explained(world: World, name: str) -> Diagnosis:
    record = find(world.engine.view, "default", name)
    assert record is not None
    told = diagnose(world.engine.view, record, world.now)
    invariants.check(world.engine)
    return told


def test_the_node_that_lacks_least_comes_first_and_says_what_it_lacks() -> None:
    world = World(
        make.node("small", cpu=1000),
        make.node("nearly", cpu=3500),
        make.node("tainted", cpu=8000, taints=[Taint("a", "NoSchedule")], memory=make.GIB),
    )
    world.create(make.pod("p", make.spec(cpu=4000, memory=2 * make.GIB)))
    world.settle()
    told = explained(world, "p")
    assert [c.node for c in told.closest] == ["nearly", "small", "tainted"]
    assert told.closest[0].missing == {"cpu": 500}
    assert [(c.kind, c.text, c.node) for c in told.changes] == [
        ("request", "ask for 3500m of cpu instead of 4000m", "nearly")
    ]


def test_a_gang_is_tried_whole_with_the_change_made_to_all_its_pods_of_the_kind() -> None:
    world = World(make.node("a", cpu=4000), make.node("b", cpu=4000))
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 4, make.spec(cpu=3000)))
    world.settle(0.5)
    told = explained(world, "g-3")
    assert told.gang is not None
    assert (told.gang.min_member, told.gang.lacking, told.gang.fit) == (4, 4, 2)
    assert told.gang.blocked == "g-2"
    assert "2 of the 4 pods" in told.message
    assert [c.text for c in told.changes] == ["ask for 2000m of cpu instead of 3000m"]
    assert any("back-off" in what for what in told.waits_for)
    assert not world.placed()


def test_a_gang_says_whom_it_waits_for() -> None:
    world = World(make.node("a"))
    world.create(*make.members("g", 2))
    world.settle()
    told = explained(world, "g-0")
    assert told.waits_for == ("the PodGroup default/g to be created, or the pod's label to go",)
    assert told.gang is not None
    assert not told.gang.exists
    assert told.message == "PodGroup default/g does not exist"
    world.declare(make.gang("g", 3))
    world.settle()
    assert explained(world, "g-0").waits_for == ("gang default/g: 1 more pod to be created",)


def test_a_mistyped_pod_group_is_told_with_those_that_are_near() -> None:
    world = World(make.node("a"))
    world.declare(make.gang("training", 3))
    world.create(*make.members("trianing", 2))
    world.settle()
    said = "PodGroup default/trianing does not exist; did you mean training?"
    assert explained(world, "trianing-0").message == said


def test_a_large_gang_costs_a_bounded_number_of_placements() -> None:
    world = World(*(make.node(f"n{i}", cpu=1000, gpus=1) for i in range(40)), check=False)
    world.declare(make.gang("g", 900))
    asked = make.spec(cpu=2000, memory=2 * make.GIB, whole=2)
    world.create(*make.members("g", 900, asked))
    world.settle(0.5)
    told = explained(world, "g-0")
    assert told.tried == 2
    assert not told.all_tried


def test_pods_in_every_stage_are_told_apart() -> None:
    world = World(make.node("a"))
    world.create(
        make.pod("there"),
        make.pod("gated", gated=True),
        make.pod("odd", make.spec(slice_mib=5)),
        make.pod("big", make.spec(cpu=99_000), priority=5),
        make.pod("bigger", make.spec(cpu=99_001), priority=9),
    )
    world.settle()
    assert explained(world, "there").stage == "bound"
    assert explained(world, "there").node == "a"
    assert explained(world, "gated").waits_for == ("its scheduling gates to be removed",)
    assert explained(world, "odd").stage == "refused"
    assert "unit is MiB" in explained(world, "odd").message
    queue = explained(world, "big").queue
    assert queue is not None
    assert (queue.place, queue.position, queue.length) == ("unschedulable", 2, 3)
    assert find(world.engine.view, "default", "nobody") is None


def test_a_cordoned_node_and_a_host_port_are_named() -> None:
    world = World(make.node("a", unschedulable=True), make.node("b"))
    world.foreign(make.pod("web", make.spec(ports=(HostPort(80),))), "b")
    world.create(make.pod("p", make.spec(ports=(HostPort(80),))))
    world.settle()
    texts = [(c.text, c.node) for c in explained(world, "p").changes]
    assert texts == [("uncordon a", "a"), ("drop the host port 80/TCP", "b")]


def test_a_pod_that_preempts_says_whom_it_waits_for_and_others_may_not_have_that_room() -> None:
    world = World(make.node("a", cpu=1000))
    world.create(make.pod("low", make.spec(cpu=800)))
    world.settle()
    world.fault = lambda action: "not yet" if isinstance(action, Evict) else ""
    world.create(make.pod("high", make.spec(cpu=600), priority=9))
    world.settle(0.5)
    told = explained(world, "high")
    assert told.waits_for[0] == "less important pods on a to leave, which it preempts"
    world.delete("low")
    world.create(make.pod("late", make.spec(cpu=600), created=world.now))
    world.step(limit=0)
    assert explained(world, "high").fits
    late = explained(world, "late")
    assert not late.fits, "room is held for the other one"
    assert [c.text for c in late.changes] == ["ask for 400m of cpu instead of 600m"]


def test_a_pod_with_claims_for_devices_is_refused_with_what_to_do() -> None:
    manifest = {
        "metadata": {"name": "claiming", "namespace": "default", "uid": "c"},
        "spec": {
            "schedulerName": names.SCHEDULER,
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
            "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
        },
    }
    world = World(make.node("n"))
    world.create(PodProjector()(msgspec.convert(manifest, PodWire)))
    world.settle()
    assert not world.placed()
    told = explained(world, "claiming")
    assert (told.stage, told.waits_for) == ("refused", ("a changed pod",))
    for said in (told.message, world.reports[-1].message):
        assert "spec.resourceClaims" in said
        assert "leave the pod to kube-scheduler" in said
