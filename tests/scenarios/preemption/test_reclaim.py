"""Namespaces take back what others borrowed of their quotas, and never from each other in turns."""

import random
from collections import Counter

import msgspec
import pytest

from alnair.model import names
from alnair.model.action import Evict
from alnair.model.quota import Quota
from alnair.model.workload import Pod
from kit import invariants, make
from kit.world import World


def gpu_pod(name: str, namespace: str, gpus: int = 1, priority: int = 0, cpu: int = 100) -> Pod:
    spec = make.spec(cpu=cpu, whole=gpus)
    return make.pod(name, spec, namespace=namespace, priority=priority)


def quota(world: World, namespace: str, gpus: int, most: int = 8, **least: int) -> None:
    value = Quota("team", {names.GPU: gpus, **least}, {names.GPU: most})
    world.set_object("ElasticQuota", "team", value, namespace)


def held(world: World) -> Counter[str]:
    used: Counter[str] = Counter()
    for pod in world.pods.values():
        if pod.node:
            used[pod.namespace] += dict(pod.spec.requests).get(names.GPU, 0)
    return used


def lent(priority: int = 9) -> World:
    """All 4 GPUs are held by `b`, which is guaranteed 2 of them and borrows those of `a`."""
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "a", 2)
    quota(world, "b", 2)
    world.create(*(gpu_pod(f"b{i}", "b", priority=priority) for i in range(4)))
    world.settle()
    assert held(world) == {"b": 4}
    return world


def test_what_was_lent_comes_back_whatever_the_priority_and_no_more() -> None:
    world = lent(priority=9)
    world.create(*(gpu_pod(f"a{i}", "a") for i in range(4)))
    world.settle()
    assert held(world) == {"a": 2, "b": 2}
    assert len(world.evicted()) == 2


def test_the_least_important_of_the_borrower_goes() -> None:
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "a", 2)
    quota(world, "b", 2)
    world.create(*(gpu_pod(f"b{i}", "b", priority=(9, 9, 4, 9)[i]) for i in range(4)))
    world.settle()
    world.create(gpu_pod("a0", "a"))
    world.settle()
    assert world.evicted() == {"b2"}


def test_of_equals_the_one_that_started_last_goes() -> None:
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "a", 2)
    quota(world, "b", 2)
    pods = [gpu_pod(f"b{i}", "b", priority=9) for i in range(4)]
    started = zip(pods, (20.0, 40.0, 30.0, 10.0), strict=True)
    world.create(*(msgspec.structs.replace(p, started=when) for p, when in started))
    world.settle()
    world.create(gpu_pod("a0", "a"))
    world.settle()
    assert world.evicted() == {"b1"}


def test_nobody_goes_by_quota_for_its_own_namespace_or_for_one_without_quota() -> None:
    world = lent()
    world.create(gpu_pod("b9", "b"), gpu_pod("c", "no-quota"))
    world.settle()
    assert not world.evicted()


def test_who_borrows_does_not_take_back() -> None:
    world = lent()
    quota(world, "a", 1)
    world.create(gpu_pod("a0", "a", gpus=2))
    world.settle()
    assert not world.evicted(), "a is guaranteed 1 and asks for 2"


def test_a_gang_takes_back_for_all_or_none_and_goes_whole() -> None:
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "default", 2)
    quota(world, "b", 2)
    world.declare(make.gang("lender", 2))
    world.declare(make.gang("borrower", 2, namespace="b"))
    pods = make.members("borrower", 2, make.spec(whole=1))
    world.create(*(msgspec.structs.replace(p, namespace="b", priority=9) for p in pods))
    world.settle()
    world.create(gpu_pod("b-0", "b"), gpu_pod("b-1", "b"))
    world.settle()
    assert held(world) == {"b": 4}
    world.create(*make.members("lender", 2, make.spec(whole=1)))
    world.settle()
    assert held(world) == {"default": 2, "b": 2}
    assert world.evicted() == {"b-0", "b-1"}, "of lower priority, and not members of a gang"


def test_a_gang_that_would_leave_its_namespace_short_stays() -> None:
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "a", 2)
    quota(world, "default", 2)
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 4, make.spec(whole=1)))
    world.settle()
    world.create(gpu_pod("a0", "a"))
    world.settle()
    assert not world.evicted(), "it cannot go in part, and whole it would take what is guaranteed"


def test_a_gang_beyond_its_quota_as_a_whole_evicts_nobody() -> None:
    world = World(make.node("n", cpu=64000, gpus=4))
    world.create(*(gpu_pod(f"old{i}", "no-quota") for i in range(4)))
    world.settle()
    quota(world, "default", 2)
    world.declare(make.gang("g", 3))
    world.create(*make.members("g", 3, make.spec(whole=1), priority=5))
    world.settle()
    assert not world.evicted()


def test_room_taken_back_is_held_against_the_important_pods_that_lent_it() -> None:
    world = lent(priority=9)
    world.graceful = True
    world.create(gpu_pod("a0", "a"))
    world.settle()
    gone = next(p for p in world.pods.values() if p.deleting)
    world.create(gpu_pod("again", "b", priority=9))
    world.delete_uid(gone.uid)
    world.settle()
    assert held(world) == {"a": 1, "b": 3}
    assert len(world.evicted()) == 1


def test_who_borrows_does_not_use_its_priority_to_take_what_is_guaranteed() -> None:
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "a", 2)
    quota(world, "b", 2)
    world.create(*(gpu_pod(f"a{i}", "a") for i in range(2)))
    world.settle()
    world.create(*(gpu_pod(f"b{i}", "b", priority=9) for i in range(4)))
    world.settle()
    assert held(world) == {"a": 2, "b": 2}
    assert not world.evicted()


def test_gpus_come_back_though_the_borrower_is_left_short_of_cores() -> None:
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "a", 2)
    quota(world, "b", 2, cpu=60000)
    world.create(*(gpu_pod(f"b{i}", "b", cpu=1000) for i in range(4)))
    world.settle()
    world.create(gpu_pod("a0", "a"))
    world.settle()
    assert held(world) == {"a": 1, "b": 3}


@pytest.mark.parametrize("seed", range(12))
def test_namespaces_never_take_from_each_other_in_turns(seed: int) -> None:
    chance = random.Random(seed)
    world = World(seed=seed, check=False)
    world.graceful = chance.random() < 0.5
    for number in range(3):
        world.put(make.node(f"n{number}", cpu=4000, gpus=chance.randrange(1, 5)))
    for namespace in "abc":
        cores = {"cpu": chance.randrange(5) * 1000} if chance.random() < 0.7 else {}
        quota(world, namespace, chance.randrange(4), **cores)
    made = 0
    for _ in range(6):
        for _ in range(8):
            made += 1
            namespace, priority = chance.choice("abcd"), chance.randrange(3)
            cpu, gpus = chance.choice((200, 1000, 2000)), chance.randrange(3)
            world.create(gpu_pod(f"p{made}", namespace, gpus, priority, cpu))
        if chance.random() < 0.5:
            made += 1
            world.declare(make.gang(f"g{made}", 3, namespace=(home := chance.choice("abc"))))
            members = make.members(f"g{made}", 3, make.spec(cpu=500, whole=1))
            world.create(*(msgspec.structs.replace(m, namespace=home) for m in members))
        world.now += chance.choice((60.0, 3600.0, 36000.0))
        for pod in [p for p in world.pods.values() if p.node and chance.random() < 0.3]:
            saved_at = world.now - chance.choice((0.0, 600.0, -600.0))
            world.set_pod(msgspec.structs.replace(pod, saved_at=saved_at))
        evictions = settle(world)
        # Each eviction makes up for what somebody lacks, or is for a higher priority.
        assert evictions < 60
        for pod in [p for p in world.pods.values() if p.node and chance.random() < 0.3]:
            world.delete_uid(pod.uid)
    invariants.check(world.engine)
    world.check_room()


def settle(world: World) -> int:
    """Let everything happen; what is evicted is made anew. Returns how many were evicted."""
    begun = seen = len(world.log)
    for _ in range(300):
        world.settle()
        for pod in [p for p in world.pods.values() if p.deleting]:
            world.delete_uid(pod.uid)
        victims = [a.pod for a in world.log[seen:] if isinstance(a, Evict)]
        seen = len(world.log)
        if not victims:
            return sum(isinstance(a, Evict) for a in world.log[begun:])
        for pod in victims:
            name, _, count = pod.name.partition("~")
            again = f"{name}~{int(count or 0) + 1}"
            world.create(
                msgspec.structs.replace(
                    pod,
                    uid=f"{pod.namespace}/{again}",
                    name=again,
                    node="",
                    assignment=(),
                    nominated="",
                    deleting=False,
                    preempted=False,
                    started=0.0,
                    saved_at=0.0,
                )
            )
    raise AssertionError("pods evict each other without end")
