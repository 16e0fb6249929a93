"""GPUs that other plugins gave to containers count as held whole."""

import pytest

from alnair.model import names
from alnair.sharing.matching.node_state import Allocation
from alnair.sharing.matching.other_plugins import given_by_others
from kit.node_state import asks, node_gpus, pod_on_node, whole_gpu

OURS = "alnair/gpu="
POD = pod_on_node("p", asks(whole=1))
PODS = {POD.uid: POD}
GPUS = node_gpus(4)


def allocation(
    *ids: str, resource: str = names.GPU, device: str = "", container: str = "main"
) -> Allocation:
    return Allocation(POD.uid, container, resource, frozenset(ids), device)


@pytest.mark.parametrize("device", ["", "nvidia.com/gpu=all", "k8s.device-plugin.nvidia.com/gpu=x"])
def test_what_another_plugin_gave_is_held_whole(device: str) -> None:
    found = given_by_others([allocation("GPU-2", "GPU-0", device=device)], PODS, GPUS, OURS)
    assert found == {POD.uid: {"main": (whole_gpu(0), whole_gpu(2))}}


def test_what_we_gave_is_not_theirs() -> None:
    assert not given_by_others([allocation("GPU-0", device=f"{OURS}1")], PODS, GPUS, OURS)


def test_a_replica_of_a_gpu_that_is_shared_by_time_is_the_gpu() -> None:
    given = [
        allocation("GPU-1::3", resource="nvidia.com/gpu.shared"),
        allocation("GPU-1::0", "GPU-1::1", container="side"),
    ]
    assert given_by_others(given, PODS, GPUS, OURS) == {
        POD.uid: {"main": (whole_gpu(1),), "side": (whole_gpu(1),)}
    }


@pytest.mark.parametrize(
    "other",
    [
        allocation("slot-0", resource=names.VGPU),
        allocation("GPU-0", resource="vendor.example/gpu"),
        allocation("MIG-1", resource="nvidia.com/mig-1g.10gb"),
        allocation("GPU-of-another-node"),
        allocation(),
    ],
)
def test_what_names_no_gpu_of_the_node_takes_none(other: Allocation) -> None:
    assert not given_by_others([other], PODS, GPUS, OURS)


def test_a_pod_that_ended_holds_nothing_and_one_that_is_unknown_does() -> None:
    ended = pod_on_node("p", is_ended=True)
    assert not given_by_others([allocation("GPU-0")], {POD.uid: ended}, GPUS, OURS)
    assert given_by_others([allocation("GPU-0")], {}, GPUS, OURS)
