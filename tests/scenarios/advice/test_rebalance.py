"""Rebalancing plans on small clusters: what is moved where, and what is left alone."""

import msgspec
import pytest

from alnair.model.workload import Pod
from alnair.scheduler.advice.rebalance import Rebalance, RebalanceOutcome
from kit import invariants, make
from kit.world import World


def tenant(name: str, node: str, slot: int, **more: object) -> Pod:
    """A pod with a whole GPU, owned by a controller unless said otherwise."""
    assignment = (("main", (make.share(make.gpu(node, slot)),)),)
    fields: dict[str, object] = {"node": node, "assignment": assignment, "owned": True, **more}
    return msgspec.structs.replace(make.pod(name, make.spec(whole=1)), **fields)


def rebalance(world: World) -> Rebalance:
    world.settle()
    return Rebalance(world.engine.view)


def moved(outcome: RebalanceOutcome) -> dict[str, str]:
    return {m.name: m.target for m in outcome.moves}


def three_nodes(**odd: object) -> World:
    """Nodes of four GPUs, of which `a` has one in use (by an odd pod), `b` two, `c` three."""
    world = World(*(make.node(n, gpus=4) for n in "abc"))
    for node, count in (("a", 1), ("b", 2), ("c", 3)):
        for slot in range(count):
            world.create(tenant(f"{node}{slot}", node, slot, **(odd if node == "a" else {})))
    return world


def test_the_node_that_takes_the_fewest_moves_is_freed_and_the_books_stay_as_they_are() -> None:
    world = three_nodes()
    outcome = rebalance(world).free_gpus(4, most=3)
    assert outcome.node == "a"
    assert [m.source for m in outcome.moves] == ["a"]
    assert moved(outcome)["a0"] in {"b", "c"}
    invariants.check(world.engine)
    assert not world.evicted()


def test_nothing_is_moved_where_enough_is_free_already() -> None:
    outcome = rebalance(three_nodes()).free_gpus(3, most=3)
    assert (outcome.node, outcome.moves, outcome.problem) == ("a", (), "")


@pytest.mark.parametrize(
    "odd",
    [
        {"owned": False},
        {"evictable": False},
        {"deleting": True},
        {"scheduler": "default-scheduler"},
        {"labels": (("app", "guarded"),)},
    ],
)
def test_pods_that_must_not_be_disturbed_stay(odd: dict[str, object]) -> None:
    world = three_nodes(**odd)
    world.budget(make.budget(app="guarded"))
    outcome = rebalance(world).free_gpus(4, most=3)
    assert outcome.node == "b"
    assert len(outcome.moves) == 2


def test_members_of_gangs_stay() -> None:
    world = three_nodes(group="g")
    world.declare(make.gang("g", 2))
    world.create(tenant("other", "b", 2, group="g"))
    assert rebalance(world).free_gpus(4, most=2).node == ""


def test_no_more_pods_are_moved_than_asked() -> None:
    outcome = rebalance(three_nodes(owned=False)).free_gpus(4, most=1)
    assert outcome.problem == "4 whole GPUs cannot be freed on any node by moving at most 1 pod"


def test_of_a_node_that_cannot_be_freed_the_pods_in_the_way_are_told() -> None:
    outcome = rebalance(three_nodes(owned=False)).free_gpus(4, most=3, node="a")
    assert [(s.name, s.why) for s in outcome.staying] == [("a0", "no controller would replace it")]
    assert outcome.problem


def test_pods_are_only_moved_to_where_there_is_room() -> None:
    world = World(make.node("a", gpus=2), make.node("b", gpus=2))
    world.create(*(tenant(f"{n}{i}", n, i) for n in "ab" for i in range(2)))
    assert rebalance(world).free_gpus(2, most=5).node == ""


def test_a_node_is_emptied_of_all_but_what_belongs_to_it() -> None:
    world = three_nodes()
    world.create(make.pod("agent", node="b", daemon=True))
    world.create(make.pod("web", make.spec(cpu=500), node="b", owned=True))
    outcome = rebalance(world).empty("b", most=5)
    assert set(moved(outcome)) == {"b0", "b1", "web"}
    assert "b" not in moved(outcome).values()


def test_a_node_that_does_not_exist_is_named() -> None:
    assert rebalance(three_nodes()).empty("x", 5).problem == "node x does not exist"
    assert rebalance(three_nodes()).free_gpus(1, 5, "x").problem == "node x does not exist"
