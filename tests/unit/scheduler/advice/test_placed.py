"""What a placed pod has, and where it would go now; the books are as before."""

import msgspec

from alnair.model import names
from alnair.model.nodes import Taint
from alnair.model.workload import GpuPart
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.scheduler.advice.diagnosis import HeldGpu, Placement
from alnair.scheduler.advice.placed import said
from kit import invariants, make
from kit.world import World


def placed(world: World, name: str = "p") -> Placement:
    record = find(world.engine.view, "default", name)
    assert record is not None
    before = dict(world.engine.view.on_row(record.row))
    free = world.engine.view.cluster.columns.free.copy()
    told = diagnose(world.engine.view, record, world.now)
    invariants.check(world.engine)
    assert dict(world.engine.view.on_row(record.row)) == before
    assert (world.engine.view.cluster.columns.free == free).all()
    assert diagnose(world.engine.view, record, world.now) == told, "asking changes nothing"
    assert told.node == world.pod(name).node
    assert told.placement is not None
    return told.placement


def test_whole_gpus_and_slices_are_told_with_their_identity() -> None:
    world = World(make.node("a", gpus=4, gpu_memory=16384))
    world.create(
        make.pod("p", make.spec(whole=2)),
        make.pod("s", make.spec(slice_mib=4096, compute=25)),
        make.pod("none"),
    )
    world.settle()
    whole = placed(world).gpus
    assert [(gpu.model, gpu.memory_mib, gpu.compute, gpu.whole) for gpu in whole] == [
        ("A100", 16384, 100, True)
    ] * 2
    assert [gpu.uuid for gpu in whole] == [f"GPU-a-{gpu.index}" for gpu in whole]
    assigned = {part.uuid for _, parts in world.pod("p").assignment for part in parts}
    assert {gpu.uuid for gpu in whole} == assigned
    (part,) = placed(world, "s").gpus
    assert (part.memory_mib, part.compute, part.whole) == (4096, 25, False)
    assert placed(world, "none").gpus == ()
    assert not placed(world).guessed


def test_the_next_best_node_is_where_it_goes_if_its_own_will_not_do() -> None:
    world = World(*(make.node(f"n{i}", cpu=4000 + 1000 * i, gpus=2) for i in range(5)))
    world.create(*(make.pod(f"q{i}", make.spec(cpu=700, whole=1)) for i in range(3)))
    world.create(make.pod("p", make.spec(cpu=500, whole=1)))
    world.settle()
    got = placed(world)
    assert got.decided_again
    assert got.next is not None
    assert got.score is not None
    assert got.fitting >= 4
    node = world.pod("p").node
    twin = make.pod("twin", make.spec(cpu=500, whole=1))
    world.delete("p")
    world.put(msgspec.structs.replace(world.nodes[node], unschedulable=True))
    world.create(twin)
    world.settle()
    assert got.better == 0, "nothing has changed since"
    assert got.score >= got.next.score
    assert world.pod("twin").node == got.next.node


def test_a_node_that_would_not_take_it_again_says_why() -> None:
    world = World(make.node("a", cpu=4000))
    world.create(make.pod("p"))
    world.settle()
    alone = placed(world)
    assert (alone.better, alone.next, alone.fitting) == (0, None, 1)
    world.put(make.node("a", cpu=4000, taints=[Taint("gpu", "NoSchedule", "yes")]))
    world.put(make.node("b"))
    world.step()
    got = placed(world)
    assert got.score is None
    assert got.why_not == ("node(s) had untolerated taint(s)",)
    assert got.next is not None
    assert (got.next.node, got.fitting) == ("b", 1)


def test_a_better_node_is_where_it_would_go() -> None:
    world = World(make.node("a"))
    world.create(make.pod("p"))
    world.settle()
    world.put(make.node("a", taints=[Taint("old", "PreferNoSchedule")]))
    world.put(make.node("b"))
    world.put(make.node("c", taints=[Taint("old", "PreferNoSchedule")]))
    world.step()
    got = placed(world)
    assert got.better >= 1
    assert got.fitting == 3
    assert got.score is not None
    assert got.next is not None
    assert got.next.node == "b"
    assert got.next.score > got.score


def test_a_pod_of_another_scheduler_says_what_it_is_taken_to_have_and_nothing_more() -> None:
    world = World(make.node("a", gpus=2), make.node("b", gpus=2))
    world.foreign(make.pod("p", make.spec(whole=1)), "a")
    world.step()
    got = placed(world)
    assert got.guessed
    assert len(got.gpus) == 1
    assert not got.decided_again
    assert got.next is None


def test_a_pod_whose_node_is_gone_has_nothing_to_tell() -> None:
    world = World(make.node("a"), make.node("b"), check=False)
    world.create(make.pod("p", make.spec(node_name="a")))
    world.settle()
    world.remove("a")
    world.step()
    record = find(world.engine.view, "default", "p")
    assert record is not None
    assert diagnose(world.engine.view, record, world.now).placement is None


def test_a_pod_of_a_gang_stays_in_the_domain_that_its_gang_requires() -> None:
    rack = "topology.example/rack"
    world = World(
        make.node("a", gpus=1, labels={rack: "1"}),
        make.node("b", gpus=1, labels={rack: "1"}),
        make.node("c", gpus=1, labels={rack: "1"}),
        make.node("far", gpus=1, labels={rack: "2"}),
    )
    world.declare(make.gang("g", 2, required=rack))
    world.create(*make.members("g", 2, make.spec(whole=1)))
    world.settle()
    free = ({"a", "b", "c"} - set(world.where("g-0", "g-1"))).pop()
    got = placed(world, "g-0")
    assert got.next is not None
    assert got.next.node == free


def test_without_books_the_pods_own_word_is_told() -> None:
    parts = (GpuPart("u1", 1, 16384, 100, whole=True), GpuPart("u0", 0, 500, 10, whole=False))
    pod = make.pod("p", make.spec(whole=1, slice_mib=0))
    pod = msgspec.structs.replace(
        pod,
        spec=make.spec(
            containers=[
                make.ContainerGpus("one", {names.GPU: 1}),
                make.ContainerGpus("two", {names.VGPU_MEMORY: 500, names.VGPU_COMPUTE: 10}),
            ]
        ),
        assignment=(("one", parts[:1]), ("two", parts[1:])),
    )
    assert said(pod) == (
        HeldGpu(0, "u0", "", 500, 10, whole=False),
        HeldGpu(1, "u1", "", 16384, 100, whole=True),
    )
    assert said(make.pod("q")) == ()
