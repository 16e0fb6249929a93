"""Gangs go where their pods are near to each other: every domain is judged, the best one taken."""

import random
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from alnair.model import names
from alnair.model.action import Evict
from alnair.model.workload import GangTopology, PodSpec
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.capacity import capacity
from kit import make
from kit.world import World

RACK, BLOCK = names.TOPOLOGY_PREFIX + "rack", names.TOPOLOGY_PREFIX + "block"


def racks(**gpus: list[int]) -> World:
    """A cluster with racks of nodes that have so many GPUs; block = first letter of the rack."""
    return World(
        *(
            make.node(f"{rack}-{i}", gpus=n, labels={RACK: rack, BLOCK: rack[0]})
            for rack, nodes in gpus.items()
            for i, n in enumerate(nodes)
        )
    )


def start(
    world: World,
    name: str,
    size: int,
    *,
    pods: int | None = None,
    required: str = "",
    preferred: Sequence[str] = (),
) -> None:
    world.declare(make.gang(name, size, required=required, preferred=preferred))
    world.create(*make.members(name, pods or size, make.spec(whole=1)))
    world.settle()


def where(world: World, name: str) -> dict[str, int]:
    """The racks in which the gang's pods are, with their numbers."""
    found: dict[str, int] = {}
    for pod in world.pods.values():
        if pod.group == name and pod.node:
            rack = pod.node.split("-")[0]
            found[rack] = found.get(rack, 0) + 1
    return found


def message(world: World, name: str) -> str:
    return next(r.message for r in reversed(world.reports) if r.pod.group == name)


def test_a_gang_with_a_required_rack_lies_in_one_rack() -> None:
    world = racks(a1=[1, 1], a2=[2, 1], a3=[1, 1])
    start(world, "g", 3, required=RACK)
    assert where(world, "g") == {"a2": 3}


def test_it_takes_the_tightest_rack_so_that_roomy_ones_stay_whole() -> None:
    world = racks(a1=[4, 4], a2=[4], a3=[8])
    start(world, "g", 4, required=RACK)
    assert where(world, "g") == {"a2": 4}
    start(world, "h", 8, required=RACK)
    assert where(world, "h") == {"a1": 8}


def test_it_prefers_a_rack_that_takes_more_of_it_than_must_start_together() -> None:
    world = racks(a1=[2], a2=[2, 1], a3=[2, 2, 2])
    start(world, "g", 2, pods=4, required=RACK)
    assert where(world, "g") == {"a3": 4}


def test_a_gang_for_which_no_rack_has_room_waits_and_is_told_which_is_the_roomiest() -> None:
    world = racks(a1=[1, 1], a2=[2, 1])
    start(world, "g", 4, required=RACK)
    assert not where(world, "g")
    assert message(world, "g") == (
        "gang default/g: 3 of the 4 pods that must start together fit; none of 2 domains of "
        f"{RACK} has room for the 4 pods that must start together; the roomiest, a2, for 3"
    )
    world.put(make.node("a1-9", gpus=2, labels={RACK: "a1", BLOCK: "a"}))
    world.settle()
    assert where(world, "g") == {"a1": 4}


def test_without_the_label_on_any_node_it_is_told_so() -> None:
    world = World(make.node("n", gpus=4))
    start(world, "g", 2, required=RACK)
    assert message(world, "g") == (
        "gang default/g: 0 of the 2 pods that must start together fit; no node has the label "
        f"{RACK}, in one of whose domains all its pods must lie"
    )


def test_a_preferred_rack_is_given_up_for_a_block_and_that_for_anywhere() -> None:
    world = racks(a1=[2], a2=[2], b1=[1], b2=[1])
    start(world, "rack", 2, preferred=[RACK, BLOCK])
    assert set(where(world, "rack")) in ({"a1"}, {"a2"})
    world = racks(a1=[2], a2=[2], b1=[1], b2=[1])
    start(world, "block", 3, preferred=[RACK, BLOCK])
    assert where(world, "block").keys() == {"a1", "a2"}
    world = racks(a1=[2], a2=[2], b1=[1], b2=[1])
    start(world, "any", 5, preferred=[RACK, BLOCK])
    assert sum(where(world, "any").values()) == 5


def test_a_gang_that_fits_no_preferred_domain_lies_in_few() -> None:
    world = racks(**{f"a{i}": [1, 1] for i in range(6)}, b1=[3], b2=[4])
    start(world, "g", 7, preferred=[RACK])
    assert where(world, "g") == {"b1": 3, "b2": 4}


def test_a_preferred_level_stays_within_the_required_one() -> None:
    # Rack names repeat in each block.
    world = World(
        *(
            make.node(f"{block}-{rack}-{i}", gpus=2, labels={BLOCK: block, RACK: rack})
            for block in "xy"
            for rack in ("r1", "r2")
            for i in range(2)
        )
    )
    start(world, "g", 4, required=BLOCK, preferred=[RACK])
    nodes = {p.node.rsplit("-", 1)[0] for p in world.pods.values()}
    assert len(nodes) == 1, "one rack of one block"
    start(world, "h", 6, required=BLOCK, preferred=[RACK])
    blocks = {p.node[0] for p in world.pods.values() if p.group == "h"}
    assert len(blocks) == 1
    assert len(world.placed()) == 10


def test_the_next_domain_is_tried_when_placing_fails_in_the_best_one() -> None:
    """Room is judged class by class: that two classes want the same GPUs shows only in placing."""
    world = racks(a1=[3], a2=[2, 2])
    world.declare(make.gang("g", 4, required=RACK))
    world.create(
        *make.members("g", 2, make.spec(whole=1)),
        *(make.pod(f"g-big{i}", make.spec(cpu=200, whole=1), group="g") for i in range(2)),
    )
    world.settle()
    assert where(world, "g") == {"a2": 4}


def test_kueues_annotations_on_pods_mean_the_same() -> None:
    asked = GangTopology(required=RACK)
    world = racks(a1=[1, 1], a2=[2, 1])
    world.declare(make.gang("g", 3))
    for pod in make.members("g", 3, make.spec(whole=1)):
        world.create(msgspec.structs.replace(pod, topology=asked))
    world.settle()
    assert where(world, "g") == {"a2": 3}


# --- late members ---------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [RACK, BLOCK, names.TOPOLOGY_PREFIX + "zone"])
def test_a_late_member_goes_near_the_others_though_nothing_was_asked(label: str) -> None:
    world = World(
        *(
            make.node(f"n{i}", gpus=2, cpu=8000 + 1000 * i, labels={label: f"d{i % 3}"})
            for i in range(9)
        )
    )
    start(world, "g", 2)
    home = {world.nodes[p.node].labels[label] for p in world.pods.values()}
    world.create(make.pod("g-late", make.spec(whole=1), group="g"))
    world.settle()
    near = world.nodes[world.pod("g-late").node].labels[label]
    assert near in home


def test_a_late_member_for_whom_there_is_no_room_nearby_goes_elsewhere() -> None:
    world = racks(a1=[2], b1=[2])
    start(world, "g", 2)
    world.create(make.pod("g-late", make.spec(whole=1), group="g"))
    world.settle()
    assert sorted(where(world, "g").values()) == [1, 2]


def test_but_not_if_its_gang_must_lie_in_one_domain() -> None:
    world = racks(a1=[2], a2=[2])
    start(world, "g", 2, required=RACK)
    world.create(make.pod("g-late", make.spec(whole=1), group="g"))
    world.settle()
    (home,) = where(world, "g")
    assert where(world, "g") == {home: 2}
    assert f"in {RACK}={home}: " in message(world, "g")


def test_a_gang_is_tried_again_when_its_topology_is_relaxed() -> None:
    world = racks(a1=[2], a2=[2])
    start(world, "g", 4, required=RACK)
    assert not where(world, "g")
    world.declare(make.gang("g", 4, preferred=[RACK]))
    world.settle()
    assert where(world, "g") == {"a1": 2, "a2": 2}


# --- minResources ---------------------------------------------------------------------------------


def test_a_gang_whose_min_resources_are_not_free_is_refused_before_it_is_tried() -> None:
    world = World(make.node("n0", cpu=4000), make.node("n1", cpu=4000))
    world.create(make.pod("other", make.spec(cpu=3000)))
    world.settle()
    world.declare(make.gang("g", 2, min_resources={"cpu": 6000}))
    world.create(*make.members("g", 2))
    world.settle()
    assert world.placed() == {"other"}
    assert message(world, "g") == (
        "gang default/g: none of the 2 pods that must start together is tried; resource gap: its "
        "minResources want cpu 6 (free 5)"
    )
    world.delete("other")
    world.settle()
    assert len(world.placed()) == 2


def test_what_its_own_pods_hold_counts_as_free_for_it() -> None:
    world = World(make.node("n0", cpu=4000), make.node("n1", cpu=4000))
    world.declare(make.gang("g", 2, min_resources={"cpu": 6000}))
    world.create(*make.members("g", 2, make.spec(cpu=3000)))
    world.settle()
    assert len(world.placed()) == 2
    world.delete("g-1")
    world.create(make.pod("g-new", make.spec(cpu=3000), group="g"))
    world.settle()
    assert world.where("g-new") != [""]


def test_a_gang_is_tried_when_its_min_resources_are_lowered() -> None:
    world = World(make.node("n0", cpu=4000))
    world.declare(make.gang("g", 2, min_resources={"cpu": 6000}))
    world.create(*make.members("g", 2))
    world.settle()
    assert not world.placed()
    world.declare(make.gang("g", 2, min_resources={"cpu": 2000}))
    world.settle()
    assert len(world.placed()) == 2


# --- order ----------------------------------------------------------------------------------------


def test_of_two_gangs_the_older_pod_group_goes_first_whatever_the_age_of_the_pods() -> None:
    world = World(make.node("n", gpus=2))
    world.create(*make.members("young", 2, make.spec(whole=1), created=1.0))
    world.create(*make.members("old", 2, make.spec(whole=1), created=2.0))
    world.declare(make.gang("young", 2, created=20.0))
    world.declare(make.gang("old", 2, created=10.0))
    world.settle()
    assert world.placed() == {"old-0", "old-1"}


def test_a_gang_that_failed_goes_behind_those_that_came_before_its_failure() -> None:
    world = World(make.node("n", gpus=2))
    world.declare(make.gang("big", 3, created=1.0))
    world.create(*make.members("big", 3, make.spec(whole=1)))
    world.settle()
    world.declare(make.gang("small", 2, created=900.0))
    world.put(make.node("m", gpus=1))
    world.create(*make.members("small", 2, make.spec(whole=1)))
    world.settle()
    assert world.placed() == {"small-0", "small-1"}


def test_after_long_failing_a_gang_is_set_back_no_more() -> None:
    world = World(make.node("n", gpus=2))
    world.declare(make.gang("big", 3, created=1.0))
    world.create(*make.members("big", 3, make.spec(whole=1)))
    world.settle()
    for number in range(12):  # every change makes it fail once more
        world.now += 30.0
        world.put(make.node("n", gpus=2, labels={"round": str(number)}))
        world.settle(20.0)
    world.now += 20.0  # its back-off is over
    world.declare(make.gang("small", 2, created=900.0))
    world.put(make.node("m", gpus=1))
    world.create(*make.members("small", 2, make.spec(whole=1)))
    world.settle()
    assert world.placed() == {"big-0", "big-1", "big-2"}


# --- room -----------------------------------------------------------------------------------------

SPECS = [
    make.spec(cpu=1000),
    make.spec(cpu=300, whole=1),
    make.spec(cpu=100, whole=2),
    make.spec(cpu=100, slice_mib=8192, compute=30),
    make.spec(cpu=100, slice_mib=20480, compute=10, soft=True),
    make.spec(cpu=100, slice_mib=4096, models="T4"),
    make.spec(cpu=100, whole=1, models="A100"),
]


@pytest.mark.parametrize("seed", range(15))
def test_room_is_what_greedy_placing_finds(seed: int) -> None:
    """On each node as many pods of a class can be placed as its room says."""
    chance = random.Random(seed)
    accounts = Accounts()
    for i in range(6):
        model, factor = chance.choice(("A100", "T4")), chance.choice((1.0, 1.5))
        gpus = chance.choice((0, 1, 4))
        accounts.put_node(make.node(f"n{i}", gpus=gpus, model=model, factor=factor, pods=20))
    (profile, *_) = profiles()
    evaluations = Evaluations(accounts.cluster)
    for i in range(12):
        Statement(accounts, evaluations, 0.0).place(
            Record(make.pod(f"before{i}", chance.choice(SPECS))), profile
        )
    for spec in SPECS:
        assert list(room(accounts, spec)) == [
            placed_on(accounts, evaluations, spec, f"n{i}") for i in range(6)
        ]


def room(accounts: Accounts, spec: PodSpec) -> list[int]:
    return [int(n) for n in capacity(spec, accounts.cluster, np.arange(accounts.columns.n))]


def placed_on(accounts: Accounts, evaluations: Evaluations, spec: PodSpec, node: str) -> int:
    (profile, *_) = profiles()
    statement = Statement(accounts, evaluations, 0.0)
    row = np.array([accounts.columns.row_of[node]])
    while (
        statement.place(Record(make.pod(f"x{len(statement.placed)}", spec)), profile, row) is None
    ):
        pass
    count = len(statement.placed)
    assert all(r.state is State.ASSUMED for r in statement.placed)
    statement.rollback()
    return count


# --- preemption -----------------------------------------------------------------------------------


def test_room_for_a_gang_that_must_lie_in_one_rack_is_made_in_one_rack() -> None:
    world = racks(a1=[2, 2], a2=[2, 2])
    for i, rack in enumerate(("a1", "a1", "a2", "a2", "a2")):
        world.create(
            make.pod(f"low{i}", make.spec(whole=1, selector={RACK: rack}), created=float(i))
        )
    world.settle()
    assert len(world.placed()) == 5
    world.declare(make.gang("g", 4, required=RACK))
    world.create(
        *(
            make.pod(f"g-{i}", make.spec(whole=1), group="g", priority=10, created=1.0)
            for i in range(4)
        )
    )
    world.settle()
    assert where(world, "g") == {"a1": 4}
    gone = {a.pod.name for a in world.log if isinstance(a, Evict)}
    assert gone == {"low0", "low1"}, "the rack with most room needs the fewest victims"
