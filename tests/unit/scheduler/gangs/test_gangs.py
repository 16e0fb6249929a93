"""A PodGroup that goes while its pods wait."""

from kit import make
from kit.world import World


def test_waiting_pods_are_told_that_their_podgroup_is_gone() -> None:
    world = World(make.node("n0", gpus=4))
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 3, make.spec(whole=1)))
    world.settle()
    assert "needs 4 pods and has 3" in world.reports[-1].message
    world.undeclare("g")
    world.settle()
    assert {r.message for r in world.reports[-3:]} == {
        "PodGroup default/g does not exist: create it, or drop the pod's label"
    }
    assert not world.placed()
