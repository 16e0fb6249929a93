"""GPUs through the whole engine: which GPU of which node, and for whom there is none."""

from typing import Any

import msgspec
import pytest

from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus
from alnair.model.workload import Pod, PodSpec
from kit import make
from kit.world import World


def whole(name: str, count: int = 1) -> ContainerGpus:
    return ContainerGpus(name, {names.GPU: count})


def slice_of(name: str, mib: int, percent: int) -> ContainerGpus:
    return ContainerGpus(name, {names.VGPU_MEMORY: mib, names.VGPU_COMPUTE: percent})


def put(world: World, *asked: PodSpec, scheduler: str = names.SCHEDULER) -> list[Pod]:
    """Create pods one after the other; returns them as they are then."""
    made = []
    for one in asked:
        pod = make.pod(f"p{len(world.pods)}", one, scheduler=scheduler)
        world.create(pod)
        world.settle()
        made.append(world.pods[pod.uid])
    world.check_room()
    return made


def put_anyway(world: World, *asked: PodSpec) -> list[Pod]:
    """Create pods on nodes that have less than is promised, for their GPUs became unhealthy."""
    made = [make.pod(f"p{len(world.pods) + number}", one) for number, one in enumerate(asked)]
    for pod in made:
        world.create(pod)
        world.settle()
    return [world.pods[pod.uid] for pod in made]


def gpus(pod: Pod) -> dict[str, list[int]]:
    return {container: [s.index for s in shares] for container, shares in pod.assignment}


def why(world: World, pod: Pod) -> str:
    return next(r.message for r in reversed(world.reports) if r.pod.uid == pod.uid)


def test_the_slices_of_one_pod_lie_on_one_gpu() -> None:
    world = World(make.node("n", gpus=4))
    asked = make.spec(containers=[slice_of("a", 8192, 30), slice_of("b", 4096, 50)])
    one, two, three = put(world, asked, asked, asked)
    assert gpus(one) == {"a": [0], "b": [0]}
    assert gpus(two) == {"a": [1], "b": [1]}, "80 % do not fit beside 80 %"
    assert gpus(three) == {"a": [2], "b": [2]}


def test_slices_are_packed_on_the_fullest_gpu_that_has_room() -> None:
    world = World(make.node("n", gpus=2))
    sizes = (60, 50, 40, 50)
    pods = put(world, *(make.spec(slice_mib=1024, compute=c) for c in sizes))
    assert [gpus(p)["main"] for p in pods] == [[0], [1], [0], [1]]


def test_the_spreading_profile_takes_the_emptiest_gpu() -> None:
    world = World(make.node("n", gpus=2))
    asked = [make.spec(slice_mib=1024, compute=20)] * 4
    pods = put(world, *asked, scheduler=names.HIGH_PERFORMANCE)
    assert [gpus(p)["main"] for p in pods] == [[0], [1], [0], [1]]


def test_memory_is_as_hard_as_compute() -> None:
    world = World(make.node("n", gpus=1, gpu_memory=16384))
    big, small, too_much = put(world, *(make.spec(slice_mib=mib) for mib in (12288, 4096, 64)))
    assert gpus(big) == gpus(small) == {"main": [0]}
    assert not too_much.node
    assert why(world, too_much) == "0/1 nodes are available: 1 Insufficient alnair/vgpu-memory."


def test_room_in_pieces_is_no_room_for_a_slice() -> None:
    world = World(make.node("n", gpus=2, gpu_memory=16384))
    *_, refused = put(world, *(make.spec(slice_mib=mib) for mib in (10240, 10240, 8192)))
    assert why(world, refused) == (
        "0/1 nodes are available: 1 node(s) have no single GPU with enough free memory and compute."
    )


def test_whole_gpus_are_free_ones() -> None:
    world = World(make.node("n", gpus=3))
    shared, two, none = put(world, make.spec(slice_mib=64), make.spec(whole=2), make.spec(whole=1))
    assert gpus(shared) == {"main": [0]}
    assert gpus(two) == {"main": [1, 2]}
    assert why(world, none) == ("0/1 nodes are available: 1 node(s) have too few free whole GPUs.")


def test_whole_gpus_and_a_slice_of_one_pod_are_different_gpus() -> None:
    world = World(make.node("n", gpus=2))
    asked = make.spec(containers=[whole("a"), slice_of("b", 1024, 10)])
    (both,) = put(world, asked)
    assert gpus(both) == {"a": [1], "b": [0]}
    assert [s.whole for _, (s,) in both.assignment] == [True, False]


def test_the_last_free_gpu_is_kept_for_whole_use() -> None:
    world = World(make.node("n", gpus=2))
    asked = make.spec(containers=[whole("a"), slice_of("b", 1024, 10)])
    shared, both, none = put(world, make.spec(slice_mib=1024, compute=10), asked, asked)
    assert gpus(shared) == {"main": [0]}
    assert gpus(both) == {"a": [1], "b": [0]}
    assert not none.node


def test_containers_share_no_whole_gpu_but_init_containers_use_theirs_again() -> None:
    world = World(make.node("n", gpus=5))
    asked = make.spec(
        containers=[
            ContainerGpus("early", {names.GPU: 2}, init=True),
            ContainerGpus("side", {names.GPU: 1}, init=True, sidecar=True),
            ContainerGpus("late", {names.GPU: 3}, init=True),
            whole("a"),
            whole("b", 2),
        ]
    )
    (one,) = put(world, asked)
    found = gpus(one)
    assert found == {"early": [0, 1], "side": [0], "late": [1, 2, 3], "a": [1], "b": [2, 3]}
    (rest,) = put(world, make.spec(whole=1))
    assert gpus(rest) == {"main": [4]}


def test_a_gpu_model_may_be_asked_for() -> None:
    mixed = [make.gpu("m", 0, "T4"), make.gpu("m", 1, "A100")]
    world = World(make.node("t", gpus=4, model="T4"), make.node("m", gpus=mixed))
    one, two, either, none, part = put(
        world,
        make.spec(whole=1, models="A100"),
        make.spec(whole=1, models="A100"),
        make.spec(whole=3, models="A100,T4"),
        make.spec(whole=1, models="H100"),
        make.spec(slice_mib=1024, models="T4"),
    )
    assert (one.node, gpus(one)) == ("m", {"main": [1]})
    assert not two.node
    assert either.node == "t"
    assert why(world, none) == (
        "0/2 nodes are available: 2 node(s) have no GPU of an accepted model."
    )
    assert part.node


@pytest.mark.parametrize(
    ("shares", "fit"),
    [
        # (percent, soft) on one GPU whose compute may be promised 1.5 times
        ([(60, False), (40, False), (1, False)], [True, True, False]),
        ([(60, False), (60, True), (30, True), (1, True)], [True, True, True, False]),
        ([(100, True), (50, False), (50, False)], [True, True, False]),
        ([(100, False), (50, True), (1, False)], [True, True, False]),
        ([(0, False), (100, False), (0, True)], [True, True, True]),
    ],
)
def test_hard_shares_stay_within_the_gpu_and_all_within_the_soft_factor(
    shares: list[tuple[int, bool]], fit: list[bool]
) -> None:
    world = World(make.node("n", gpus=1, factor=1.5))
    pods = put(world, *(make.spec(slice_mib=64, compute=c, soft=s) for c, s in shares))
    assert [bool(p.node) for p in pods] == fit


def test_a_gpu_has_a_hundred_slots() -> None:
    world = World(make.node("n", gpus=1, pods=200), check=False)
    pods = [make.pod(f"p{i:03}", make.spec(slice_mib=64, cpu=1, memory=1)) for i in range(101)]
    world.create(*pods)
    world.settle()
    assert len(world.placed()) == 100
    assert why(world, world.pod("p100")) == ("0/1 nodes are available: 1 Insufficient alnair/vgpu.")


def test_nameless_gpus_are_used_whole_and_the_device_plugin_chooses() -> None:
    world = World(make.node("n", nameless_gpus=2, labels={names.GPU_MODEL_LABEL: "T4"}))
    one, other, part, model = put(
        world,
        make.spec(whole=1),
        make.spec(whole=1, models="A100"),
        make.spec(slice_mib=1024),
        make.spec(whole=1, models="T4"),
    )
    assert (one.node, one.assignment) == ("n", ())
    assert not other.node
    assert not part.node
    assert model.node == "n"


def test_gpus_of_foreign_pods_count_though_nobody_knows_which() -> None:
    world = World(make.node("n", gpus=3))
    world.foreign(make.pod("theirs", make.spec(whole=2)), "n")
    world.settle()
    one, two = put(world, make.spec(whole=1), make.spec(whole=1))
    assert gpus(one) == {"main": [0]}
    assert not two.node


def test_a_guess_gives_way_to_what_a_pod_says_itself() -> None:
    node = make.node("n", gpus=2)
    world = World(node)
    world.foreign(make.pod("theirs", make.spec(whole=1)), "n")
    world.step()
    last = (("main", (make.share(node.gpus[1]),)),)
    world.create(make.pod("ours", make.spec(whole=1), node="n", assignment=last))
    world.settle()
    (none,) = put(world, make.spec(slice_mib=64))
    assert not none.node, "both GPUs are taken, whichever theirs is"


def test_gpus_that_are_described_anew_keep_their_holders() -> None:
    node = make.node("n", gpus=3)
    world = World(node)
    one, two = put(world, make.spec(slice_mib=1024, compute=60), make.spec(whole=1))
    world.put(msgspec.structs.replace(node, gpus=tuple(reversed(node.gpus))))
    world.settle()
    accounts = world.engine._accounts
    for pod in (one, two):
        record = accounts.records[pod.uid]
        uuids = {accounts.devices.gpus[record.row][b.slot].uuid for b in record.bookings}
        assert uuids == {s.uuid for _, parts in pod.assignment for s in parts}


def test_a_binding_under_way_keeps_its_gpus_when_they_are_described_anew() -> None:
    node = make.node("n", gpus=3)
    world = World(node)
    world.create(make.pod("a", make.spec(whole=1)))
    world.step()
    world.put(msgspec.structs.replace(node, gpus=tuple(reversed(node.gpus))))
    world.step()
    world.create(make.pod("b", make.spec(whole=1)), make.pod("c", make.spec(whole=1)))
    world.settle()
    assert len(world.placed()) == 3
    world.check_room()


def test_a_change_of_a_running_pods_assignment_is_followed() -> None:
    node = make.node("n", gpus=2)
    world = World(node)
    (one,) = put(world, make.spec(whole=1))
    world.update(one.name, assignment=(("main", (make.share(node.gpus[1]),)),))
    world.settle()
    (two,) = put(world, make.spec(whole=1))
    assert gpus(two) == {"main": [0]}


def test_gpus_that_a_change_of_an_assignment_frees_are_used() -> None:
    node = make.node("n", gpus=2)
    world = World(node)
    one, two = put(world, make.spec(slice_mib=30000), make.spec(slice_mib=30000))
    (waits,) = put(world, make.spec(slice_mib=20000))
    assert not waits.node
    tight = (("main", (make.share(node.gpus[0], 30000),)),)
    world.update(two.name, assignment=tight)  # somebody moved it onto the GPU of the other
    world.settle()
    assert world.pod(waits.name).node == "n"
    assert gpus(world.pod(waits.name)) == {"main": [1]}
    assert one.node


def test_refused_demands_say_why_and_are_not_tried_again() -> None:
    world = World(make.node("n", gpus=1))
    (refused,) = put(world, make.spec(slice_mib=1024, compute=130))
    assert why(world, refused).startswith("container 'main' asks for 130 % of one GPU")
    before = len(world.log)
    world.put(make.node("m", gpus=1))
    world.settle()
    assert len(world.log) == before


def test_nothing_new_goes_to_an_unhealthy_gpu_and_what_is_on_it_stays() -> None:
    healthy = make.node("n", gpus=2)
    world = World(healthy)
    slice_spec, whole_spec = make.spec(slice_mib=1024, compute=30), make.spec(whole=1)
    (there,) = put(world, slice_spec)
    world.put(make.unhealthy(healthy, 0))
    pods = put_anyway(world, slice_spec, slice_spec, whole_spec)
    assert gpus(there) == {"main": [0]}
    assert [gpus(pod) for pod in pods] == [{"main": [1]}, {"main": [1]}, {}]
    assert not world.evicted()

    world.delete(there.name)
    world.put(healthy)
    world.settle()
    assert gpus(world.pods[pods[2].uid]) == {"main": [0]}, "it is healthy again"
    world.check_room()


def test_a_pod_on_an_unhealthy_gpu_is_still_there_after_a_restart() -> None:
    healthy = make.node("n", gpus=2)
    world = World(healthy)
    put(world, make.spec(whole=1))
    world.put(make.unhealthy(healthy, 0))
    world.restart()
    assert world.engine.view.cluster.devices.whole_free[0] == 1
    world.put(healthy)
    one, none = put(world, make.spec(whole=1), make.spec(slice_mib=64))
    assert gpus(one) == {"main": [1]}
    assert not none.node


def test_an_unhealthy_gpu_raises_the_soft_factor_of_no_other() -> None:
    world = World(make.unhealthy(make.node("n", gpus=2, factor=1.5), 0))
    soft = make.spec(slice_mib=64, compute=50, soft=True)
    *fitting, refused = put(world, soft, soft, soft, soft)
    assert [gpus(pod)["main"] for pod in fitting] == [[1], [1], [1]]
    assert not refused.node


#: On two GPUs of which the first is unhealthy: what is asked for, what is there, and the reason.
REFUSED = [
    ({"whole": 2}, None, "node(s) have too few healthy GPUs"),
    ({"whole": 3}, None, "node(s) have too few healthy GPUs"),
    ({"containers": [whole("a"), slice_of("b", 1024, 10)]}, None, "too few healthy GPUs"),
    ({"whole": 1}, {"slice_mib": 64}, "node(s) have no room on their healthy GPUs"),
    ({"slice_mib": 1024, "compute": 60}, {"slice_mib": 64, "compute": 50}, "no room on their"),
]


@pytest.mark.parametrize(("asked", "there", "words"), REFUSED)
def test_a_refusal_says_that_gpus_are_unhealthy(
    asked: dict[str, Any], there: dict[str, Any] | None, words: str
) -> None:
    # Totals that would do: only the GPUs themselves refuse.
    sick = make.unhealthy(make.node("n", gpus=2), 0)
    world = World(msgspec.structs.replace(sick, allocatable=make.node(gpus=3).allocatable))
    world.check = False  # it is told of more than it has
    if there:
        put_anyway(world, make.spec(**there))
    (refused,) = put_anyway(world, make.spec(**asked))
    assert words in why(world, refused)
