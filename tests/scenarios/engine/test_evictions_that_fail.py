"""Evictions that are refused are asked for again after a while, not at once."""

from alnair.model.action import Evict
from kit import make
from kit.world import World


def test_who_would_preempt_backs_off_when_its_victim_may_not_be_evicted() -> None:
    world = World(make.node("a", cpu=1000))
    world.create(make.pod("low", make.spec(cpu=800)))
    world.settle()
    world.fault = lambda action: "a disruption budget" if isinstance(action, Evict) else ""
    world.create(make.pod("high", make.spec(cpu=600), priority=9))
    world.settle(60.0)
    asked = [action for action in world.log if isinstance(action, Evict)]
    assert 2 <= len(asked) <= 12
    world.fault = lambda action: ""
    world.settle(60.0)
    assert world.placed() == {"high"}
