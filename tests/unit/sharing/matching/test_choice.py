"""Which GPUs a pod gets that no scheduler of ours placed."""

from msgspec.structs import replace

from alnair.model import names
from alnair.model.gpu_demand import gpu_demand
from alnair.sharing.matching.assignment_check import assignment_problem
from alnair.sharing.matching.choice import choose
from alnair.sharing.matching.node_state import PodOnNode
from alnair.sharing.matching.outcomes import Refuse, Wait
from kit.node_state import asks, node_gpus, pod_on_node, slice_of, whole_gpu

SMALL = pod_on_node("small", asks(memory=2_000, compute=20))


def taking(name: str, index: int, memory: int, compute: int = 0) -> PodOnNode:
    part = {"main": [slice_of(index, memory, compute)]}
    return pod_on_node(name, asks(memory=memory, compute=compute), given=part)


def test_a_slice_goes_where_the_least_memory_is_left() -> None:
    others = [taking("x", 1, 7_000), taking("y", 2, 3_000)]
    assert choose(SMALL, node_gpus(3), others, {}) == {"main": [slice_of(1, 2_000, 20)]}


def test_a_slice_does_not_go_where_memory_or_hard_compute_is_short() -> None:
    others = [taking("x", 0, 9_000), taking("y", 1, 100, 90)]
    assert choose(SMALL, node_gpus(3), others, {}) == {"main": [slice_of(2, 2_000, 20)]}
    soft = pod_on_node("soft", asks(memory=2_000, compute=20), soft=True)
    assert choose(soft, node_gpus(3), others, {}) == {"main": [slice_of(1, 2_000, 20)]}


def test_all_slices_of_a_pod_go_to_one_gpu_and_its_whole_ones_to_others() -> None:
    pod = pod_on_node(
        "p",
        asks("load", memory=6_000, init=True),
        asks("side", whole=1, sidecar=True),
        asks("main", memory=5_000),
        asks("watch", memory=1_000),
    )
    # GPU 1 would be the best fit, had it not 500 MiB too little for main and watch together.
    chosen = choose(pod, node_gpus(3), [taking("x", 1, 4_500), taking("y", 2, 100)], {})
    assert chosen == {
        "load": [slice_of(2, 6_000)],
        "side": [whole_gpu(0)],
        "main": [slice_of(2, 5_000)],
        "watch": [slice_of(2, 1_000)],
    }


def test_whole_gpus_are_those_that_the_kubelet_allocated_where_they_are_free() -> None:
    pod = pod_on_node("p", asks("load", whole=2, init=True), asks(whole=1), asks("b", whole=1))
    kubelet = {
        "load": frozenset({"GPU-2", "GPU-3"}),
        "main": frozenset({"GPU-3"}),
        "b": frozenset({"GPU-2"}),
    }
    chosen = choose(pod, node_gpus(4), [], {}, kubelet)
    assert chosen == {
        "load": [whole_gpu(2), whole_gpu(3)],
        "main": [whole_gpu(3)],
        "b": [whole_gpu(2)],
    }
    instead = choose(pod, node_gpus(4), [taking("x", 3, 100)], {}, kubelet)
    assert isinstance(instead, dict)
    assert {part.uuid for parts in instead.values() for part in parts} == {"GPU-2", "GPU-0"}
    assert not assignment_problem(pod.demand, instead, {g.uuid: g for g in node_gpus(4)})


def test_containers_that_run_at_once_get_different_whole_gpus() -> None:
    pod = pod_on_node("p", asks("load", whole=1, init=True), asks(whole=1), asks("b", whole=1))
    assert choose(pod, node_gpus(3), [], {}) == {
        "load": [whole_gpu(0)],
        "main": [whole_gpu(0)],
        "b": [whole_gpu(1)],
    }


def test_containers_that_have_started_keep_their_gpus() -> None:
    pod = pod_on_node("p", asks(memory=500), asks("b", memory=500), asks("c", whole=1))
    begun = {pod.uid: {"main": (slice_of(2, 500),), "c": (whole_gpu(1),)}}
    assert choose(pod, node_gpus(3), [], begun) == {
        "main": [slice_of(2, 500)],
        "b": [slice_of(2, 500)],
        "c": [whole_gpu(1)],
    }


def test_pods_that_started_and_are_unknown_count_and_ended_ones_do_not() -> None:
    begun = {"uid-gone": {"main": (slice_of(0, 9_000),)}}
    assert choose(SMALL, node_gpus(2), [], begun) == {"main": [slice_of(1, 2_000, 20)]}
    ended = replace(taking("x", 0, 9_000), is_ended=True)
    assert choose(SMALL, node_gpus(1), [ended], {}) == {"main": [slice_of(0, 2_000, 20)]}


def test_gpus_that_fail_or_are_of_another_model_or_in_mig_mode_get_no_slices() -> None:
    failed, mig, other, good = node_gpus(4)
    gpus = [
        replace(failed, problem="XID 79"),
        replace(mig, may_be_sliced=False),
        replace(other, model="T4"),
        replace(good, model="A100"),
    ]
    demand = gpu_demand([asks(memory=500)], {names.GPU_MODELS: "A100"})
    assert choose(replace(SMALL, demand=demand), gpus, [], {}) == {"main": [slice_of(3, 500)]}


def test_what_fits_nowhere_is_refused_with_what_it_asked_for() -> None:
    pod = pod_on_node("p", asks(memory=9_000, compute=30), asks("b", whole=1))
    refused = choose(pod, node_gpus(2), [taking("x", 1, 2_000)], {})
    assert refused == Refuse(
        "pod team/p has no assignment, and no GPUs of this node have room for it: it asks for "
        "9000 MiB and 30 % compute on one GPU and 1 GPU that nobody has a part of. Let "
        "alnair-scheduler place it (schedulerName), which knows the room on each GPU",
        is_final=False,
    )


def test_what_no_gpu_can_give_is_refused_for_good() -> None:
    for pod in (pod_on_node("p"), pod_on_node("p", asks(memory=8))):
        refused = choose(pod, node_gpus(), [], {})
        assert isinstance(refused, Refuse)
        assert refused.is_final


def test_room_that_leaving_pods_hold_is_waited_for() -> None:
    pod = pod_on_node("p", asks(whole=1))
    stays = taking("stays", 0, 100)
    given = {"main": [whole_gpu(1)]}
    leaves = pod_on_node("leaves", asks(whole=1), given=given, is_leaving=True)
    started = {leaves.uid: {"main": (whole_gpu(1),)}}
    waits = choose(pod, node_gpus(2), [stays, leaves], started)
    assert isinstance(waits, Wait)
    assert "pods that hold it are leaving" in waits.reason
    assert isinstance(choose(pod, node_gpus(1), [stays, leaves], started), Refuse)
