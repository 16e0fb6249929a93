"""What pods hold of GPUs, and whether another one has room beside them."""

from collections.abc import Sequence

import pytest

from alnair.sharing.matching.node_state import PodOnNode
from alnair.sharing.matching.room import Held, held_by, holds, room_problem
from kit.node_state import asks, node_gpus, pod_on_node, slice_of, whole_gpu


def sliced(memory: int, compute: int = 0, *, soft: bool = False) -> PodOnNode:
    part = [slice_of(0, memory, compute)]
    return pod_on_node("p", asks(memory=memory, compute=compute), soft=soft, given={"main": part})


WHOLE = pod_on_node("w", asks(whole=1), given={"main": [whole_gpu(0)]})


def test_an_init_container_and_the_main_one_hold_the_larger_of_both() -> None:
    pod = pod_on_node(
        "p",
        asks("load", memory=4_000, compute=10, init=True),
        asks("side", memory=1_000, compute=5, sidecar=True),
        asks("late", memory=2_000, compute=70, init=True),
        asks("main", memory=2_500, compute=20),
    )
    parts = {r.container: [slice_of(0, r.memory_mib, r.compute)] for r in pod.demand.requests}
    assert held_by(pod.demand, parts) == {"GPU-0": Held(4_000, 75, whole=False)}
    assert (pod.demand.memory_mib, pod.demand.compute) == (4_000, 75)


def test_of_an_unknown_pod_all_is_counted() -> None:
    parts = {"load": (slice_of(0, 4_000, 10),), "main": (slice_of(0, 2_500, 20),)}
    assert holds(None, parts) == {"GPU-0": Held(6_500, 30, whole=False)}


def test_soft_shares_hold_memory_only() -> None:
    assert holds(sliced(500, 40, soft=True), {})["GPU-0"] == Held(500, 0, whole=False)


def test_what_a_container_started_with_counts_and_not_what_was_written_later() -> None:
    pod = sliced(500)
    assert holds(pod, {"main": (slice_of(1, 700),)}) == {"GPU-1": Held(700, 0, whole=False)}


def test_containers_that_have_not_started_count_from_the_first_start_on() -> None:
    pod = pod_on_node(
        "p",
        asks(memory=500),
        asks("late", memory=700),
        given={"main": [slice_of(0, 500)], "late": [slice_of(0, 700)]},
    )
    begun = {"main": (slice_of(0, 500),)}
    assert holds(pod, begun) == {"GPU-0": Held(1_200, 0, whole=False)}


@pytest.mark.parametrize(
    ("new", "there", "says"),
    [
        (sliced(4_000), [sliced(6_000)], ""),
        (sliced(4_001), [sliced(6_000)], "10000 MiB: others hold 6000, and this pod asks for 4001"),
        (sliced(500, 40), [sliced(500, 60)], ""),
        (sliced(500, 41), [sliced(500, 60)], "others hold 60, and this pod asks for 41"),
        (sliced(500, 100, soft=True), [sliced(500, 60)], ""),
        (sliced(500), [sliced(500, 100)], ""),
        (sliced(500), [WHOLE], "GPU 0 (GPU-0) is another pod's, whole"),
        (WHOLE, [WHOLE], "GPU 0 (GPU-0) is another pod's, whole"),
        (WHOLE, [sliced(500), sliced(500)], "asked for whole, and 2 pods have slices of it"),
        (WHOLE, [], ""),
    ],
)
def test_whether_there_is_room(new: PodOnNode, there: Sequence[PodOnNode], says: str) -> None:
    gpus = {gpu.uuid: gpu for gpu in node_gpus()}
    found = room_problem(holds(new, {}), [holds(pod, {}) for pod in there], gpus)
    assert says in found
    assert bool(says) == bool(found)
