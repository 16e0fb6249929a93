"""What the vGPU server is told of a container, from its pod's assignment."""

from msgspec.structs import replace

from alnair.model import names
from alnair.model.gpu_demand import gpu_demand
from alnair.node.vgpu.containers.container_slices import ContainerMatch, Share, problem
from alnair.processes.agent.device_plugin.slices import name, slices
from alnair.sharing.matching.node_state import PodOnNode
from kit.node_state import asks, pod_on_node
from kit.plugin_node import GPUS, part

UID = "5f1c3f0e-54b5-4c5b-9c9c-0d1f6d7f2a11"
HALF = asks(memory=5_000, compute=50)


def share(pod: PodOnNode, compute: int = 50) -> Share:
    made = slices(replace(pod, uid=UID), "main", [part(1, 5_000, compute)])
    assert problem(made) == ""
    assert made.who == ContainerMatch(pod=UID)
    assert (made.pod.namespace, made.pod.name, made.pod.container) == ("team", pod.name, "main")
    (found,) = made.shares
    return found


def test_a_share_is_hard_unless_the_pod_says_otherwise() -> None:
    assert share(pod_on_node("a", HALF)) == Share(GPUS[1].uuid, 5_000, 50)
    assert share(pod_on_node("a", HALF, soft=True)) == Share(GPUS[1].uuid, 5_000, 50, soft=True)


def test_without_a_share_it_has_what_the_others_leave() -> None:
    pod = pod_on_node("a", asks(memory=5_000))
    assert share(pod, 0) == Share(GPUS[1].uuid, 5_000, 0, soft=True)


def test_a_client_of_mps_is_bounded_by_its_server() -> None:
    demand = gpu_demand([HALF], {names.VGPU_ISOLATION: "mps"})
    pod = replace(pod_on_node("a", HALF), demand=demand)
    assert demand is not None
    assert demand.mps
    assert share(pod) == Share(GPUS[1].uuid, 5_000)


def test_it_may_have_memory_of_the_host_where_the_pod_says_so() -> None:
    for host, mib in (({}, 5_000), ({names.VGPU_HOST_MEMORY: "700"}, 700)):
        for more in ({}, {names.VGPU_ISOLATION: "mps"}):
            demand = gpu_demand([HALF], {names.VGPU_MEMORY_POLICY: "swap", **host, **more})
            assert share(replace(pod_on_node("a", HALF), demand=demand)).swap_mib == mib


def test_it_borrows_where_the_pod_says_so() -> None:
    for more in ({}, {names.VGPU_ISOLATION: "mps"}):
        demand = gpu_demand([HALF], {names.VGPU_MEMORY_POLICY: "soft", **more})
        found = share(replace(pod_on_node("a", HALF), demand=demand))
        assert (found.borrows, found.swap_mib, found.memory_mib) == (True, 0, 5_000)


def test_the_longest_name_of_a_container_still_names_its_slices() -> None:
    assert name(UID, "main") == f"{UID}-main"
    longest = "c" * 63
    assert problem(slices(pod_on_node("a", HALF), longest, [part(0)])) == ""
    assert len(name(UID, longest)) == 100
    made = slices(replace(pod_on_node("a", HALF), uid=UID), longest, [part(0)])
    assert problem(made) == ""
