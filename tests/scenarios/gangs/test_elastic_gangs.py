"""Elastic gangs: all start together; what they lose beyond their minimum shrinks them."""

import random
from typing import Any

import msgspec
import pytest

from alnair.model import names
from alnair.model.action import Bind, Evict
from alnair.model.quota import Quota
from alnair.model.workload import Gang, Pod
from kit import make
from kit.soak import cases
from kit.world import World


def elastic(name: str = "g", target: int = 4, least: int = 2, **rest: Any) -> Gang:
    return msgspec.structs.replace(make.gang(name, target, **rest), elastic_min=least)


def running(target: int = 4, least: int = 2, nodes: int = 4, **rest: Any) -> World:
    """A gang of so many on nodes of one GPU each."""
    world = World(*(make.node(f"n{i}", gpus=1) for i in range(nodes)))
    world.graceful = False
    world.declare(elastic("g", target, least))
    world.create(*make.members("g", target, make.spec(whole=1), **rest))
    world.settle()
    return world


def high(count: int, gpus: int = 1, **rest: Any) -> list[Pod]:
    return [make.pod(f"high-{i}", make.spec(whole=gpus), priority=5, **rest) for i in range(count)]


def test_the_first_time_all_start_together() -> None:
    world = running(nodes=3)
    assert not world.placed()
    world.put(make.node("n3", gpus=1))
    world.settle()
    assert len(world.placed()) == 4


@pytest.mark.parametrize(("least", "wanted", "left"), [(2, 1, 3), (2, 2, 2), (1, 3, 1), (2, 3, 0)])
def test_preemption_takes_members_above_the_minimum_or_all(
    least: int, wanted: int, left: int
) -> None:
    world = running(least=least)
    world.create(*high(wanted))
    world.settle()
    here = [p for p in world.pods.values() if p.group]
    # The whole gang goes where its minimum does, and those who still fit did not have to.
    assert sum(bool(p.node) for p in here) == left
    assert {f"high-{i}" for i in range(wanted)} <= world.placed()
    if left:
        assert len(world.evicted()) == wanted


def test_an_eviction_says_that_the_gang_goes_on_and_with_how_many() -> None:
    world = running()
    world.create(*high(1))
    world.settle()
    (evict,) = (a for a in world.log if isinstance(a, Evict))
    assert evict.reason == "Preempted"
    assert evict.message.endswith("; elastic gang default/g goes on with 3 members, at least 2"), (
        evict.message
    )


def test_an_eviction_of_the_whole_gang_does_not_say_that_it_goes_on() -> None:
    world = running()
    world.create(*high(3))
    world.settle()
    told = [a.message for a in world.log if isinstance(a, Evict)]
    assert [text.partition("; ")[2] for text in told] == [
        "elastic gang default/g goes on with 3 members, at least 2",
        "elastic gang default/g goes on with 2 members, at least 2",
        "",
        "",
    ]


def test_spare_members_of_an_elastic_gang_go_before_lone_pods_that_have_worked_less() -> None:
    world = running(nodes=5)
    world.now += 3600.0
    world.create(make.pod("lone", make.spec(whole=1)))
    world.settle()
    world.create(*high(1))
    world.settle()
    assert world.evicted() < {f"g-{i}" for i in range(4)}


def test_with_a_minimum_of_one_the_last_member_is_no_spare_one() -> None:
    world = running(target=2, least=1, nodes=3)
    world.create(make.pod("lone", make.spec(whole=1)))
    world.settle()
    world.create(*high(2))
    world.settle()
    assert len(world.evicted() & {"g-0", "g-1"}) == 1
    assert "lone" in world.evicted()


def test_a_lost_member_is_placed_again_alone_when_there_is_room() -> None:
    world = running()
    world.delete("g-1")
    world.foreign(make.pod("other", make.spec(whole=1)), _free(world))
    world.settle()
    assert len(world.placed()) == 3
    world.create(make.pod("g-1", make.spec(whole=1), group="g", uid="again"))
    world.settle()
    assert not world.pod("g-1").node
    world.delete("other")
    world.settle()
    assert world.pod("g-1").node
    assert not world.evicted()


def _on(world: World, node: str) -> bool:
    return any(p.node == node for p in world.pods.values())


def test_a_gang_that_grows_keeps_its_minimum_and_takes_what_fits() -> None:
    world = running(target=2, nodes=3)
    world.declare(elastic("g", 4, 2))
    extra = make.members("g", 4, make.spec(whole=1))[2:]
    world.create(*extra)
    world.settle()
    assert len(world.placed()) == 3, "one more fits, and it does not wait for the other"


def test_below_its_minimum_it_waits_for_as_many_as_that_takes() -> None:
    world = running(target=4, least=3)
    for name in ("g-1", "g-2"):
        world.delete(name)
    for i in range(2):
        world.foreign(make.pod(f"o{i}", make.spec(whole=1)), _free(world))
    again = make.members("g", 4, make.spec(whole=1))[1:3]
    world.create(*(msgspec.structs.replace(p, uid=p.uid + "again") for p in again))
    world.settle()
    assert len(world.placed()) == 2
    world.delete("o0")
    world.settle()
    assert len(world.placed()) == 3


def _free(world: World) -> str:
    return next(n for n in world.nodes if not _on(world, n))


def test_reclaim_takes_what_borrows_above_the_minimum() -> None:
    world = running()
    for namespace, gpus in (("default", 2), ("b", 2)):
        world.set_object("ElasticQuota", "team", Quota("team", {names.GPU: gpus}), namespace)
    world.create(make.pod("mine", make.spec(whole=1), namespace="b"))
    world.settle()
    assert world.pod("mine", "b").node
    assert len([p for p in world.pods.values() if p.group and p.node]) == 3


def test_a_new_leader_knows_from_the_api_that_it_was_placed_once() -> None:
    world = running()
    world.create(*high(1))
    world.settle()
    world.restart()
    world.create(*(msgspec.structs.replace(p, name="late", uid="late") for p in high(1)))
    world.settle()
    assert len([p for p in world.pods.values() if p.group and p.node]) == 2


def test_until_the_api_says_so_it_goes_whole() -> None:
    world = running()
    gang = msgspec.structs.replace(world.gangs["default", "g"], placed=False)
    world.declare_exactly(gang)
    world.restart()
    world.create(*high(1))
    world.settle()
    assert {a.pod.name for a in world.log if isinstance(a, Evict)} == {f"g-{i}" for i in range(4)}


def test_min_resources_are_those_of_the_start() -> None:
    world = World(*(make.node(f"n{i}", gpus=1) for i in range(4)))
    world.declare(elastic("g", 4, 1, min_resources={names.GPU: 4}))
    world.create(*make.members("g", 4, make.spec(whole=1)))
    world.settle()
    for i in range(4):
        world.delete(f"g-{i}")
    for i in range(3):
        world.foreign(make.pod(f"o{i}", make.spec(whole=1)), f"n{i}")
    world.create(make.pod("g-0", make.spec(whole=1), group="g", uid="again"))
    world.settle()
    assert world.pod("g-0").node == "n3"


class Shrinking:
    """Elastic gangs in a cluster that is too small, with crashes, failures and lost members."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(*(make.node(f"n{i}", gpus=2) for i in range(5)), seed=seed, check=False)
        self.world.graceful = True
        self.world.fault = lambda action: "injected" if self.chance.random() < 0.05 else ""
        self.count = self.seen = self.shrunk = self.broken = 0

    def new_gang(self) -> None:
        if len(self.world.pods) > 24:
            return
        self.count += 1
        target = self.chance.randrange(3, 6)
        name = f"g{self.count}"
        self.world.declare(elastic(name, target, self.chance.randrange(1, target)))
        priority = self.chance.randrange(2)
        self.world.create(*make.members(name, target, make.spec(whole=1), priority=priority))

    def new_pod(self) -> None:
        if len(self.world.pods) > 30:
            return
        self.count += 1
        asked = make.spec(whole=self.chance.choice((1, 1, 2)))
        self.world.create(make.pod(f"p{self.count}", asked, priority=self.chance.randrange(5)))

    def end(self) -> None:
        """Let some pod go, by itself or since it was told to; its gang gets another one."""
        leaving = [p for p in self.world.pods.values() if p.deleting]
        if not leaving and self.chance.random() < 0.7:
            return
        pod = self.chance.choice(leaving or list(self.world.pods.values() or [None]))
        if pod is None:
            return
        self.world.delete_uid(pod.uid)
        if pod.group and self.chance.random() < 0.8:
            self.count += 1
            again = make.pod(
                pod.name, pod.spec, uid=f"u{self.count}", group=pod.group, priority=pod.priority
            )
            self.world.create(again)

    def step(self) -> None:
        self.world.step(deliver=self.chance.choice((1, 4, None)))
        self.judge()

    def judge(self) -> None:
        """Of each gang that loses members to our evictions, enough stay, or none does."""
        engine = self.world.engine
        log, self.seen = self.world.log[self.seen :], len(self.world.log)
        for action in log:
            if not isinstance(action, Evict) or not action.pod.group:
                continue
            state = engine._gangs.find((action.pod.namespace, action.pod.group))
            if state is None or action.reason != "Preempted":
                continue
            left = len([r for r in state.placed() if r.row >= 0])
            assert left == 0 or left >= state.min_member, (action.message, left, state.gang)
            if "goes on" in action.message:
                self.shrunk += 1
            else:
                self.broken += 1

    def carry_out(self) -> None:
        if self.world.outbox:
            self.world.carry_out(self.chance.randrange(len(self.world.outbox)))

    def advance(self) -> None:
        self.world.now += self.chance.choice((0.5, 2.0, 20.0, 100.0))

    def crash(self) -> None:
        requests = range(len(self.world.outbox))
        self.world.crash([n for n in requests if self.chance.random() < 0.5])

    def run(self, steps: int) -> None:
        choices = [self.new_gang, self.new_gang, self.new_pod, self.advance]
        choices += [self.step] * 6 + [self.carry_out] * 8 + [self.end] * 5
        for number in range(steps):
            self.chance.choice(choices)()
            if number % 20 == 0:
                self.world.check_room()
            if number % 150 == 0:
                self.crash()


@pytest.mark.parametrize("seed", cases(2))
def test_random_evictions_leave_the_minimum_or_nothing(seed: int) -> None:
    shrinking = Shrinking(seed)
    shrinking.run(1500)
    assert shrinking.shrunk > 2
    assert shrinking.broken > 1
    world = shrinking.world
    world.fault = lambda action: ""
    for _ in range(50):
        world.settle()
        going = [p.uid for p in world.pods.values() if p.deleting]
        if not going:
            break
        for uid in going:
            world.delete_uid(uid)
    before = len(world.log)
    world.restart()
    world.settle(0.0)
    assert not [a for a in world.log[before:] if isinstance(a, Bind | Evict)], "forgotten"
