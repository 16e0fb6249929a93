"""Lone pods through the whole engine."""

import make
from world import World


def test_a_pod_is_bound_to_a_node_with_room() -> None:
    world = World(make.node("full", cpu=50), make.node("free"))
    world.create(make.pod("a", make.spec(cpu=1000)))
    world.settle()
    assert world.where("a") == ["free"]
    assert world.reports[-1].message == "Successfully assigned default/a to free"


def test_a_pod_that_does_not_fit_waits_and_is_placed_when_room_appears() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.settle()
    world.create(make.pod("b", make.spec(cpu=800)))
    world.settle()
    assert world.where("b") == [""]
    assert world.reports[-1].message == "0/1 nodes are available: 1 Insufficient cpu."
    world.delete("a")
    world.settle()
    assert world.where("b") == ["n"]
