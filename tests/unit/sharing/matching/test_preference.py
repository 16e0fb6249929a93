"""Which ids of whole GPUs the kubelet is advised to allocate."""

from alnair.model import names
from alnair.sharing.matching.node_state import PodOnNode
from alnair.sharing.matching.preference import preferred_ids
from kit.node_state import allocated, asks, pod_on_node, slice_of, whole_gpu

ALL = ["GPU-0", "GPU-1", "GPU-2", "GPU-3"]


def two(name: str, first: int, second: int, created: float = 0.0) -> PodOnNode:
    parts = {"main": [whole_gpu(first), whole_gpu(second)]}
    return pod_on_node(name, asks(whole=2), given=parts, created=created)


def test_the_oldest_pod_that_waits_for_so_many_gets_its_own() -> None:
    pods = [two("young", 0, 1, created=2.0), two("old", 2, 3, created=1.0)]
    assert preferred_ids(2, ALL, [], pods, []) == ["GPU-2", "GPU-3"]


def test_pods_that_have_theirs_or_want_more_or_less_are_passed_over() -> None:
    has, wants = two("has", 2, 3), two("wants", 1, 0, created=3.0)
    held = [allocated(has, "main", "GPU-2", "GPU-3", resource=names.GPU)]
    one = pod_on_node("one", asks(whole=1), given={"main": [whole_gpu(3)]}, created=1.0)
    assert preferred_ids(2, ALL, [], [wants, has, one], held) == ["GPU-1", "GPU-0"]


def test_pods_whose_gpus_the_kubelet_cannot_give_are_passed_over() -> None:
    pods = [two("a", 0, 1, created=1.0), two("b", 2, 3, created=2.0)]
    assert preferred_ids(2, ALL[1:], [], pods, []) == ["GPU-2", "GPU-3"]


def test_what_is_reused_from_init_containers_comes_first() -> None:
    pods = [two("a", 0, 1, created=1.0), two("b", 2, 3, created=2.0)]
    assert preferred_ids(2, ALL, ["GPU-3"], pods, []) == ["GPU-3", "GPU-2"]
    assert preferred_ids(3, ALL, ["GPU-3"], [], []) == ["GPU-3", "GPU-0", "GPU-1"]


def test_where_nobody_waits_gpus_come_first_that_nobody_was_given() -> None:
    slices = pod_on_node("s", asks(memory=500), given={"main": [slice_of(0, 500)]})
    ended = pod_on_node("e", asks(whole=1), given={"main": [whole_gpu(1)]}, is_ended=True)
    pods = [slices, ended, two("big", 2, 3)]
    assert preferred_ids(1, ALL, [], pods, []) == ["GPU-1"]
    assert preferred_ids(3, ALL, [], [slices, ended], []) == ["GPU-1", "GPU-2", "GPU-3"]
