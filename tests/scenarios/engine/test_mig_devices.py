"""MIG devices are extended resources like any other: counted per node, and chosen on the node."""

from alnair.model import names
from alnair.model.quota import Quota
from alnair.model.workload import Pod
from alnair.scheduler.advice.diagnose import diagnose, find
from kit import make
from kit.world import World

SMALL = names.MIG_PREFIX + "1g.10gb"


def asking(name: str, count: int = 1, resource: str = SMALL, **more: object) -> Pod:
    return make.pod(name, make.spec(extended={resource: count}), **more)


def test_as_many_pods_are_placed_as_there_are_devices_and_the_rest_told_why() -> None:
    world = World(
        make.node("cut", gpus=1, extended={SMALL: 2}),
        make.node("other", gpus=1, extended={names.MIG_PREFIX + "2g.20gb": 1}),
    )
    world.create(*(asking(f"p{i}") for i in range(3)))
    world.settle()
    assert sorted(world.where("p0", "p1", "p2")) == ["", "cut", "cut"]
    assert all(not pod.assignment for pod in world.pods.values())
    assert f"0/2 nodes are available: 2 Insufficient {SMALL}." in {r.message for r in world.reports}
    (waiting,) = (pod for pod in world.pods.values() if not pod.node)
    record = find(world.engine.view, waiting.namespace, waiting.name)
    assert record is not None
    told = diagnose(world.engine.view, record, world.now)
    (predicate,) = told.predicates
    assert (predicate.plugin, predicate.nodes) == ("NodeResourcesFit", 2)
    assert [(one.node, one.missing) for one in told.closest] == [
        ("cut", {SMALL: 1}),
        ("other", {SMALL: 1}),
    ]


def test_a_pod_that_waits_is_placed_when_a_gpu_is_cut_up_or_a_device_comes_free() -> None:
    world = World(make.node("n", gpus=2))
    world.create(asking("a"), asking("b"))
    world.settle()
    assert world.where("a", "b") == ["", ""]
    world.put(make.node("n", gpus=1, extended={SMALL: 1}))
    world.settle()
    assert sorted(world.where("a", "b")) == ["", "n"]
    (first,) = world.placed()
    world.delete(first)
    world.settle()
    assert len(world.placed()) == 1


def test_slices_and_whole_gpus_are_placed_beside_them_on_the_other_gpus() -> None:
    world = World(make.node("n", gpus=1, extended={SMALL: 7}))
    world.create(
        asking("mig", 7),
        make.pod("slice", make.spec(slice_mib=1000, compute=10)),
        make.pod("whole", make.spec(whole=1)),
    )
    world.settle()
    assert world.where("mig") == ["n"]
    assert len(world.placed()) == 2, "one GPU is left, for the slice or the pod that wants it whole"


def test_quotas_bound_them_by_their_names() -> None:
    world = World(make.node("n", extended={SMALL: 7}))
    world.set_object("ElasticQuota", "team", Quota("team", {SMALL: 2}, {SMALL: 2}), "a")
    world.create(*(asking(f"p{i}", namespace="a") for i in range(4)))
    world.settle()
    assert len(world.placed()) == 2
    assert any(SMALL in r.message for r in world.reports)
