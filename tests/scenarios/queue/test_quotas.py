"""Elastic quotas: bounds, borrowing, fair turns; and what a restart makes of them."""

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from alnair.model import names
from alnair.model.quota import Quota
from alnair.model.workload import Pod
from kit import make
from kit.world import World


def gpu_pod(name: str, namespace: str, gpus: int = 1, **more: object) -> Pod:
    pod = make.pod(name, make.spec(whole=gpus), namespace=namespace)
    return msgspec.structs.replace(pod, **more)


def quota(world: World, namespace: str, least: int, most: int) -> None:
    value = Quota("team", {names.GPU: least}, {names.GPU: most})
    world.set_object("ElasticQuota", "team", value, namespace)


def held(world: World) -> Counter[str]:
    used: Counter[str] = Counter()
    for pod in world.pods.values():
        if pod.node and not pod.finished:
            used[pod.namespace] += dict(pod.spec.requests).get(names.GPU, 0)
    return used


def test_a_namespace_never_gets_more_than_its_max() -> None:
    world = World(make.node("n", cpu=64000, gpus=8))
    quota(world, "a", 2, 3)
    world.create(*(gpu_pod(f"p{i}", "a") for i in range(5)))
    world.settle()
    assert held(world) == {"a": 3 - 1}, (
        "nothing is guaranteed to others, so nothing can be borrowed"
    )
    quota(world, "b", 4, 8)
    world.settle()
    assert held(world) == {"a": 3}, "b leaves 4 idle: 1 of them is borrowed, then max is reached"
    assert any("is more than max 3" in r.message for r in world.reports)


def test_what_nobody_uses_is_lent_and_no_more() -> None:
    world = World(make.node("n", cpu=64000, gpus=8))
    quota(world, "a", 2, 8)
    quota(world, "b", 2, 8)
    world.create(*(gpu_pod(f"p{i}", "a") for i in range(6)))
    world.settle()
    assert held(world) == {"a": 4}, "the quotas guarantee 4 together"
    assert any("nothing is left to borrow" in r.message for r in world.reports)
    world.create(gpu_pod("q", "b"))
    world.settle()
    assert held(world) == {"a": 4, "b": 1}, "who is within its min is not kept out by borrowers"


def test_a_pod_that_waits_for_its_quota_goes_when_another_ends() -> None:
    world = World(make.node("n", cpu=64000, gpus=8))
    quota(world, "a", 1, 1)
    world.create(gpu_pod("first", "a"), gpu_pod("second", "a"), gpu_pod("third", "a"))
    world.settle()
    assert sum(held(world).values()) == 1
    first = next(p.name for p in world.pods.values() if p.node)
    world.pods = dict(world.pods)
    uid = next(u for u, p in world.pods.items() if p.name == first)
    world.delete_uid(uid)
    world.settle()
    assert sum(held(world).values()) == 1
    quota(world, "a", 2, 2)
    world.settle()
    assert sum(held(world).values()) == 2


def test_a_gang_counts_as_a_whole_against_its_quota() -> None:
    world = World(make.node("n", cpu=64000, gpus=8))
    quota(world, "default", 2, 2)
    world.declare(make.gang("g", 3))
    world.create(*make.members("g", 3, make.spec(whole=1)))
    world.settle()
    assert not held(world)
    quota(world, "default", 3, 3)
    world.settle()
    assert held(world) == {"default": 3}


def test_namespaces_take_turns_by_their_share_and_priority_goes_before() -> None:
    world = World(*(make.node(f"n{i}", cpu=64000, gpus=4) for i in range(3)))
    quota(world, "a", 8, 12)
    quota(world, "b", 4, 12)
    world.create(*(gpu_pod(f"a{i:02}", "a", created=1.0) for i in range(12)))
    world.create(*(gpu_pod(f"b{i:02}", "b", created=2.0) for i in range(12)))
    world.settle()
    assert held(world) == {"a": 8, "b": 4}, "in proportion to min, though all of a came first"
    world = World(make.node("n", cpu=64000, gpus=4))
    quota(world, "a", 2, 4)
    quota(world, "b", 2, 4)
    world.create(*(gpu_pod(f"a{i}", "a", preempts=False) for i in range(4)))
    world.create(*(gpu_pod(f"b{i}", "b", priority=5, created=9.0) for i in range(4)))
    world.settle()
    assert held(world) == {"b": 4}


def test_a_new_leader_counts_what_is_held_already() -> None:
    world = World(make.node("n", cpu=64000, gpus=8))
    quota(world, "a", 2, 2)
    world.create(*(gpu_pod(f"p{i}", "a") for i in range(2)))
    world.settle()
    world.restart()
    world.create(*(gpu_pod(f"q{i}", "a") for i in range(2)))
    world.settle()
    assert held(world) == {"a": 2}


_PODS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.booleans()), min_size=1, max_size=25
)


@given(_PODS, st.lists(st.integers(0, 6), min_size=4, max_size=4), st.data())
def test_no_order_of_events_breaks_a_quota(
    pods: list[tuple[str, int, bool]], bounds: list[int], data: st.DataObject
) -> None:
    world = World(make.node("n", cpu=64000, gpus=8), make.node("m", cpu=64000, gpus=4))
    least = {"a": bounds[0], "b": bounds[1]}
    most = {"a": bounds[0] + bounds[2], "b": bounds[1] + bounds[3]}
    for namespace, guaranteed in least.items():
        quota(world, namespace, guaranteed, most[namespace])
    for number, (namespace, gpus, ends) in enumerate(pods):
        world.create(gpu_pod(f"p{number}", namespace, gpus))
        if data.draw(st.booleans()):
            world.settle()
        placed = [p.uid for p in world.pods.values() if p.node]
        if ends and placed:
            world.delete_uid(data.draw(st.sampled_from(placed)))
        if data.draw(st.integers(0, 9)) == 0:
            world.crash()
        used = held(world)
        for bounded in least:
            assert used[bounded] <= most[bounded]
        borrowed = sum(max(0, used[n] - least[n]) for n in least)
        assert borrowed <= sum(least.values())
    world.settle()
    used = held(world)
    waiting = [p for p in world.pods.values() if not p.node and p.namespace in least]
    free = 12 - sum(used.values())
    for pod in waiting:  # who is within its min, and has room, does not wait
        asked = dict(pod.spec.requests)[names.GPU]
        node_room = any(
            sum(
                dict(p.spec.requests)[names.GPU] for p in world.pods.values() if p.node == node.name
            )
            + asked
            <= len(node.gpus)
            for node in world.nodes.values()
        )
        within = used[pod.namespace] + asked <= min(least[pod.namespace], most[pod.namespace])
        assert not (within and node_room and free >= asked), pod.name


def test_amounts_are_told_as_people_write_them() -> None:
    world = World(make.node("n", cpu=64000))
    world.set_object("ElasticQuota", "team", Quota("team", {}, {"cpu": 1500}), "a")
    world.create(make.pod("p", make.spec(cpu=2000), namespace="a"))
    world.settle()
    assert [r.message for r in world.reports] == [
        "ElasticQuota a/team: cpu 0 used and 2 asked is more than max 1.5"
    ]
