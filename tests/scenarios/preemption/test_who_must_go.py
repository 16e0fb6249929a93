"""Who must go for a pod: borrowed before own, spare members, no gang, least work, fewest pods."""

import msgspec
import pytest

from alnair.model import names
from alnair.model.quota import Quota
from alnair.model.workload import Pod
from kit import make
from kit.world import World

HOUR = 3600.0
NOW = 1_000_000.0


def gpus_on(node: str, first: int, count: int = 1) -> tuple[tuple[str, object], ...]:
    shares = tuple(make.share(make.gpu(node, slot)) for slot in range(first, first + count))
    return (("main", shares),)


def on(
    name: str, node: str, first: int, count: int = 1, *, hours: float = 1.0, **rest: object
) -> Pod:
    """A pod that has run on these GPUs of a node for some hours."""
    return make.pod(
        name,
        make.spec(whole=count),
        node=node,
        assignment=gpus_on(node, first, count),
        started=NOW - hours * HOUR,
        **rest,
    )


def world_of(*nodes: str, gpus: int = 4) -> World:
    world = World(*(make.node(name, cpu=64000, gpus=gpus) for name in nodes))
    world.now = NOW
    return world


def quota(world: World, namespace: str, gpus: int) -> None:
    world.set_object("ElasticQuota", "team", Quota("team", {names.GPU: gpus}), namespace)


def high(gpus: int = 4, namespace: str = "b", **rest: object) -> Pod:
    return make.pod("high", make.spec(whole=gpus), namespace=namespace, priority=5, **rest)


def evicted(world: World, *pods: Pod) -> set[str]:
    world.create(*pods)
    world.settle()
    return world.evicted()


def borrowed_and_own(own_gang: bool = True) -> World:
    """`a` holds 20 GPUs, 8 of them borrowed; `b` 8 of its 12, by a gang or by lone pods."""
    world = world_of(*(f"n{i}" for i in range(7)))
    quota(world, "a", 12)
    quota(world, "b", 16)
    if own_gang:
        world.declare(make.gang("train", 2, namespace="b"))
    for i in range(2):
        group = "train" if own_gang else ""
        world.create(on(f"train-{i}", f"n{i}", 0, 4, namespace="b", group=group, hours=0.1))
    for i in range(20):
        world.create(on(f"a{i}", f"n{2 + i // 4}", i % 4, namespace="a", hours=5.0))
    world.settle()
    return world


@pytest.mark.parametrize("own_gang", [True, False])
def test_borrowed_pods_go_before_a_gang_or_lone_pods_that_are_somebodys_own(
    own_gang: bool,
) -> None:
    world = borrowed_and_own(own_gang)
    gone = evicted(world, high())
    assert len(gone) == 4
    assert all(name.startswith("a") for name in gone), gone
    assert world.pod("high", "b").node
    # Nobody takes anything back in turn.
    world.settle(600.0)
    assert world.evicted() == gone


def test_borrowed_pods_go_for_slices_too() -> None:
    world = world_of("x", "y", gpus=1)
    world.set_object("ElasticQuota", "t", Quota("t", {names.VGPU_MEMORY: 40960}), "a")
    world.set_object("ElasticQuota", "t", Quota("t", {names.VGPU_MEMORY: 81920}), "b")
    for node, namespace, hours in (("x", "b", 0.1), ("y", "a", 5.0)):
        for i in range(2):
            share = make.share(make.gpu(node, 0), 20480)
            pod = make.pod(
                f"{namespace}{i}",
                make.spec(slice_mib=20480),
                namespace=namespace,
                node=node,
                assignment=(("main", (share,)),),
                started=NOW - hours * HOUR,
            )
            world.create(pod)
    world.set_object("ElasticQuota", "t", Quota("t", {names.VGPU_MEMORY: 20480}), "a")
    world.settle()
    asked = make.pod("high", make.spec(slice_mib=20480), namespace="b", priority=5)
    gone = evicted(world, asked)
    assert len(gone) == 1
    assert gone < {"a0", "a1"}


def test_a_budget_counts_before_what_is_borrowed() -> None:
    world = borrowed_and_own(own_gang=False)
    for i in range(20):
        labelled = msgspec.structs.replace(world.pod(f"a{i}", "a"), labels=(("app", "web"),))
        world.set_pod(labelled)
    budget = make.budget("keep", 0, app="web")
    world.budget(msgspec.structs.replace(budget, namespace="a"))
    gone = evicted(world, high())
    assert gone in ({"train-0"}, {"train-1"})


def test_a_lower_priority_counts_before_what_is_borrowed() -> None:
    world = world_of("x", "y")
    quota(world, "a", 0)
    quota(world, "b", 8)
    world.create(on("own", "x", 0, 4, namespace="b"))
    world.create(on("borrowed", "y", 0, 4, namespace="a", priority=1))
    assert evicted(world, high()) == {"own"}


def test_of_two_nodes_the_one_with_less_of_somebodys_own_is_emptied() -> None:
    world = world_of("x", "y")
    quota(world, "a", 1)
    quota(world, "b", 12)
    for slot in range(4):
        world.create(on(f"x{slot}", "x", slot, namespace="b", hours=0.1))
        namespace = "a" if slot < 2 else "b"
        world.create(on(f"y{slot}", "y", slot, namespace=namespace, hours=9.0))
    # Of the two pods of `a`, one is its own.
    assert evicted(world, high()) == {"y0", "y1", "y2", "y3"}


def test_members_that_a_gang_can_spare_go_before_lone_pods() -> None:
    world = world_of("x", "y")
    world.declare(make.gang("g", 2))
    for slot in range(4):
        world.create(on(f"g-{slot}", "x", slot, group="g", hours=50.0))
        world.create(on(f"lone-{slot}", "y", slot, hours=0.1))
    world.settle()
    gone = evicted(world, high(2))
    assert len(gone) == 2
    assert all(name.startswith("g-") for name in gone)


def test_lone_pods_go_before_a_gang_though_they_are_more_and_have_run_longer() -> None:
    world = world_of("x", "y", "z")
    world.declare(make.gang("g", 2))
    world.create(on("g-0", "x", 0, 4, group="g", hours=0.1))
    world.create(on("g-1", "y", 0, 4, group="g", hours=0.1))
    world.create(*(on(f"lone-{slot}", "z", slot, hours=9.0) for slot in range(4)))
    world.settle()
    assert evicted(world, high()) == {f"lone-{slot}" for slot in range(4)}


def test_the_least_work_is_lost_though_more_pods_go() -> None:
    world = world_of("x", "y")
    world.create(on("long", "x", 0, 4, hours=10.0))
    world.create(*(on(f"short-{slot}", "y", slot, hours=1.0) for slot in range(4)))
    assert evicted(world, high()) == {f"short-{slot}" for slot in range(4)}


def test_on_one_node_the_least_work_is_lost() -> None:
    world = world_of("x")
    world.create(on("pair", "x", 0, 2, hours=3.0))
    world.create(on("one", "x", 2, hours=2.0), on("other", "x", 3, hours=5.0))
    # 6 GPU hours, where the two lone pods have 7.
    assert evicted(world, high(2)) == {"pair"}


def test_of_about_equal_work_the_fewest_pods_go() -> None:
    world = world_of("x", "y")
    world.create(on("big", "x", 0, 4, hours=1.01))
    world.create(*(on(f"small-{slot}", "y", slot, hours=1.0) for slot in range(4)))
    assert evicted(world, high()) == {"big"}


@pytest.mark.parametrize(
    ("saved_hours_ago", "goes"), [(0.5, "saving"), (-5.0, "other"), (20.0, "other")]
)
def test_work_that_was_saved_is_not_lost(saved_hours_ago: float, goes: str) -> None:
    world = world_of("x", "y")
    saved_at = NOW - saved_hours_ago * HOUR
    world.create(on("saving", "x", 0, 4, hours=10.0, saved_at=saved_at))
    world.create(on("other", "y", 0, 4, hours=2.0))
    assert evicted(world, high()) == {goes}


def test_news_of_a_checkpoint_counts_at_once() -> None:
    world = world_of("x", "y", "z")
    for node, hours in (("x", 10.0), ("y", 2.0), ("z", 1.0)):
        world.create(on(f"on-{node}", node, 0, 4, hours=hours))
    assert evicted(world, high()) == {"on-z"}
    world.update("on-x", saved_at=NOW - 60.0)
    again = msgspec.structs.replace(high(), name="again", uid="again", priority=5)
    assert evicted(world, again) == {"on-z", "on-x"}


def test_a_gang_that_preempts_takes_borrowed_pods_and_breaks_no_gang() -> None:
    world = borrowed_and_own()
    world.declare(make.gang("new", 2, namespace="b"))
    members = make.members("new", 2, make.spec(whole=4), priority=5)
    gone = evicted(world, *(msgspec.structs.replace(m, namespace="b") for m in members))
    assert len(gone) == 8
    assert all(name.startswith("a") for name in gone), gone
