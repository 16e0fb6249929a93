"""What is left of every GPU, from nodes and pods."""

from alnair.live.replay.gpu_state import GpuState, gpu_state
from alnair.model.nodes import Gpu, Node
from alnair.model.workload import GpuDemand, GpuPart, GpuRequest, Pod, PodSpec
from alnair.scheduler.published.fragmentation import FreeNode

GPUS = tuple(Gpu(f"u{i}", i, "T4", 16000) for i in range(3))
NODE = Node("n", {"cpu": 8000, "nvidia.com/gpu": 3}, {"nvidia.com/gpu.product": "T4"}, gpus=GPUS)


def share(index: int, compute: int = 100, *, whole: bool = False) -> GpuPart:
    return GpuPart(f"u{index}", index, 1000, compute, whole)


def pod(
    *containers: tuple[str, tuple[GpuPart, ...]],
    demand: GpuDemand | None = None,
    node: str = "n",
    finished: bool = False,
) -> Pod:
    spec = PodSpec(requests=(("cpu", 1500), ("pods", 1)), gpu=demand or GpuDemand())
    return Pod("u", "d", "p", spec, "s", 0.0, assignment=containers, node=node, finished=finished)


def test_whole_gpus_and_slices_are_taken_where_the_assignment_says() -> None:
    pods = [
        pod(("a", (share(0, whole=True),))),
        pod(("a", (share(1, 30),)), ("b", (share(1, 20),))),
        pod(("a", (share(2, 90),)), finished=True),
        pod(("a", (share(2, 90),)), node=""),
    ]
    assert gpu_state([NODE], pods) == GpuState(
        3000, 1500, (FreeNode(8000 - 3000, (0, 500, 1000), "T4"),)
    )


def test_an_init_container_shares_the_gpu_of_those_that_follow() -> None:
    demand = GpuDemand((GpuRequest("i", init=True), GpuRequest("a")))
    held = pod(("i", (share(0, 50),)), ("a", (share(0, 50),)), demand=demand)
    assert gpu_state([NODE], [held]).allocated == 500


def test_a_pod_without_an_assignment_counts_where_there_is_room() -> None:
    pods = [
        pod(("a", (share(1, 30),))),
        pod(demand=GpuDemand(whole=1)),
        pod(demand=GpuDemand(compute=60)),
    ]
    assert gpu_state([NODE], pods).free[0].gpu_milli == (0, 100, 1000)


def test_a_node_without_a_description_has_the_gpus_that_it_offers() -> None:
    plain = Node("m", {"cpu": 1000, "nvidia.com/gpu": 2})
    assert gpu_state([plain], []) == GpuState(2000, 0, (FreeNode(1000, (1000, 1000)),))
