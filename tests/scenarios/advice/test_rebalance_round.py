"""One round of the rebalancing loop on small clusters: whom it helps, and what it leaves alone."""

import msgspec
import pytest

from alnair.model.rebalancing import PlannedMove, RebalanceBounds, RebalancePlan
from alnair.model.workload import Pod
from alnair.scheduler.advice.rebalance_round import Round, rebalance_round
from kit import invariants, make
from kit.world import World

NOW = 100_000.0
BOUNDS = RebalanceBounds(every=600, moves=4, cool_down=3600, gain=2.0)


def tenant(name: str, node: str, slot: int, **more: object) -> Pod:
    """A pod with a whole GPU that a ReplicaSet owns, long on its node."""
    assignment = (("main", (make.share(make.gpu(node, slot)),)),)
    fields: dict[str, object] = {
        "node": node,
        "assignment": assignment,
        "owned": True,
        "controller": ("ReplicaSet", name),
        **more,
    }
    return msgspec.structs.replace(make.pod(name, make.spec(whole=1)), **fields)


def cluster(**odd: object) -> World:
    """Nodes of four GPUs: `a` has one in use (by an odd pod), `b` two, `c` three; none is free."""
    world = World(*(make.node(n, gpus=4) for n in "abc"))
    world.now = NOW
    for node, count in (("a", 1), ("b", 2), ("c", 3)):
        for slot in range(count):
            world.create(tenant(f"{node}{slot}", node, slot, **(odd if node == "a" else {})))
    return world


def big(name: str = "big", gpus: int = 4, **more: object) -> Pod:
    fields: dict[str, object] = {"created": NOW - 1000, **more}
    return msgspec.structs.replace(make.pod(name, make.spec(whole=gpus)), **fields)


def look(
    world: World, bounds: RebalanceBounds = BOUNDS, past: tuple[RebalancePlan, ...] = ()
) -> Round:
    world.settle()
    before = dict(world.engine.view.pods)
    found = rebalance_round(world.engine.view, bounds, past, NOW)
    invariants.check(world.engine)
    assert world.engine.view.pods == before
    assert not world.evicted()
    return found


def moved(found: Round) -> set[str]:
    return {move.name for move in found.plan.moves} if found.plan else set()


def reasons(found: Round) -> list[str]:
    return [one.reason for one in found.declined]


def test_the_fewest_pods_move_for_a_pod_that_waits() -> None:
    world = cluster()
    world.create(big())
    found = look(world)
    assert moved(found) == {"a0"}
    assert found.plan is not None
    assert (found.plan.nodes, found.plan.gpus) == (("a",), 4)
    assert found.plan.pod == ("default", "big", "uid-default-big")


def test_nobody_is_moved_for_gpus_that_nobody_waits_for() -> None:
    assert look(cluster()) == Round()


def test_who_starts_as_things_are_needs_nobody_to_move() -> None:
    world = cluster()
    world.create(big(gpus=3))
    assert look(world) == Round()


def test_who_has_just_come_is_not_helped_yet() -> None:
    world = cluster()
    world.create(big(created=NOW - 599))
    assert look(world) == Round()


def test_a_gang_is_helped_as_a_whole_or_not_at_all() -> None:
    world = cluster()
    world.declare(make.gang("g", 2))
    world.create(big("g0", group="g"), big("g1", group="g"))
    # Two nodes of four would take six pods to move, and there is room for none of them.
    assert reasons(look(world)) == ["no-plan"]
    world.put(make.node("d", gpus=4))
    found = look(world)
    assert found.plan is not None
    assert found.plan.gets == "8 GPUs"
    assert moved(found) == {"a0"}


def test_a_member_of_a_gang_that_needs_no_gpu_does_not_count() -> None:
    world = cluster()
    world.declare(make.gang("g", 2))
    launcher = make.pod("launcher", group="g", created=NOW - 1000, priority=9)
    world.create(launcher, big("g1", group="g"))
    found = look(world)
    assert moved(found) == {"a0"}
    assert found.plan is not None
    assert found.plan.gpus == 4


def test_nobody_is_moved_for_who_would_not_start_all_the_same() -> None:
    world = cluster()
    for node in "abc":
        world.create(make.pod(f"busy-{node}", make.spec(cpu=5000), node=node))
    world.create(msgspec.structs.replace(big(), spec=make.spec(whole=4, cpu=5000)))
    assert reasons(look(world)) == ["no-start"]


def test_a_gang_of_which_pods_are_still_missing_is_not_helped() -> None:
    world = cluster()
    world.declare(make.gang("g", 2))
    world.create(big("g0", group="g"))
    assert look(world) == Round()


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"bound_at": NOW - 3599}, id="it came less than the cool-down ago"),
        pytest.param({"priority": 1}, id="it is more important than who waits"),
        pytest.param({"owned": False}, id="nobody would replace it"),
        pytest.param({"evictable": False}, id="its owner says so"),
        pytest.param({"labels": (("app", "guarded"),)}, id="its disruption budget says so"),
    ],
)
def test_pods_that_must_stay_do(odd: dict[str, object]) -> None:
    world = cluster(**odd)
    world.budget(make.budget(app="guarded"))
    world.create(big())
    found = look(world)
    assert "a0" not in moved(found)
    assert moved(found) == {"b0", "b1"}


def test_no_more_pods_move_than_are_allowed() -> None:
    world = cluster(owned=False)
    world.create(big())
    bounds = msgspec.structs.replace(BOUNDS, moves=1)
    assert reasons(look(world, bounds)) == ["no-plan"]


def test_what_moves_must_be_worth_it() -> None:
    world = cluster(owned=False)
    world.create(big())
    # Two GPUs move, and four are put to use.
    assert moved(look(world, msgspec.structs.replace(BOUNDS, gain=2.0)))
    found = look(world, msgspec.structs.replace(BOUNDS, gain=2.1))
    assert reasons(found) == ["little-gain"]
    assert found.declined[0].message == "4 GPUs would start for 2 that move"


def earlier(
    unit: str, kind: str, source: str, target: str, at: float = NOW - 3601
) -> RebalancePlan:
    move = PlannedMove(
        namespace="default",
        name="x",
        uid="x",
        kind=kind,
        source=source,
        target=target,
        stage="done",
    )
    return RebalancePlan(
        unit=unit, name=unit, pod=("n", "p", "p"), gpus=4, at=at, nodes=(source,), moves=(move,)
    )


def test_a_plan_that_undoes_the_one_before_it_is_refused() -> None:
    world = cluster()
    world.create(big())
    (target,) = (move.target for move in look(world).plan.moves)  # type: ignore[union-attr]
    back = earlier("other", "ReplicaSet/a0", target, "a")
    found = look(world, past=(back,))
    assert reasons(found) == ["undoes"]
    assert found.declined[0].message == f"default/a0 would go back to {target}"
    # Another pod's move is no reason.
    assert moved(look(world, past=(earlier("other", "ReplicaSet/z", target, "a"),))) == {"a0"}


def test_who_was_helped_in_vain_is_not_helped_again_before_the_cool_down_is_over() -> None:
    world = cluster()
    world.create(big())
    unit = look(world).plan.unit  # type: ignore[union-attr]
    for at, expected in ((NOW - 3500, ["helped-before"]), (NOW - 3700, [])):
        found = look(world, past=(earlier(unit, "ReplicaSet/z", "q", "r", at),))
        assert reasons(found) == expected
    assert moved(found) == {"a0"}


def test_a_node_that_does_not_suit_is_not_freed() -> None:
    world = cluster()
    for node in "abc":
        model = "T4" if node == "a" else "V100"
        world.put(make.node(node, gpus=4, model=model))
    asked = make.spec(whole=4, models="V100")
    world.create(msgspec.structs.replace(big(), spec=asked))
    assert moved(look(world)) == {"b0", "b1"}


def test_members_that_an_elastic_gang_can_spare_move_unless_one_has_just_come() -> None:
    for bound_at, expected in ((NOW - 4000, {"a0"}), (NOW - 100, {"b0", "b1"})):
        world = cluster(group="e")
        world.declare(msgspec.structs.replace(make.gang("e", 2), elastic_min=1, placed=True))
        # Another member, which has been there for longer or not: they move, and cool down, as one.
        world.update("c0", group="e", bound_at=bound_at)
        world.create(big())
        assert moved(look(world)) == expected


def sliced(name: str, node: str, slot: int, mib: int) -> Pod:
    """A pod with a slice of a GPU that a ReplicaSet owns, long on its node."""
    assignment = (("main", (make.share(make.gpu(node, slot), mib),)),)
    return msgspec.structs.replace(
        make.pod(name, make.spec(slice_mib=mib)),
        node=node,
        assignment=assignment,
        owned=True,
        controller=("ReplicaSet", name),
    )


def test_a_slice_that_fits_on_no_gpu_gets_one_freed_for_it() -> None:
    third = make.GPU_MEMORY // 3
    world = World(*(make.node(n, gpus=1) for n in "ab"))
    world.now = NOW
    world.create(sliced("a0", "a", 0, third), sliced("b0", "b", 0, third))
    waits = make.pod("waits", make.spec(slice_mib=make.GPU_MEMORY), created=NOW - 1000)
    world.create(waits)
    found = look(world)
    assert len(moved(found)) == 1
    assert found.plan is not None
    assert (found.plan.name, found.plan.gpus) == ("pod default/waits", 1)
    assert found.plan.gets == f"a slice of {make.GPU_MEMORY} MiB of a GPU"


def test_a_slice_that_is_hardly_larger_than_what_would_move_moves_nobody() -> None:
    half = make.GPU_MEMORY // 2
    world = World(*(make.node(n, gpus=1) for n in "ab"))
    world.now = NOW
    world.create(sliced("a0", "a", 0, half), sliced("b0", "b", 0, half))
    waits = make.pod("waits", make.spec(slice_mib=half + 1024), created=NOW - 1000)
    world.create(waits)
    assert reasons(look(world)) == ["little-gain"]
