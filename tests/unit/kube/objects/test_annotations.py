"""The annotations of our contract, byte for byte as the golden files have them.

Other processes (agent, device plugin) and users read these; a change here is a change of contract.
"""

import calendar
from pathlib import Path

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.annotations import gang_plan, gpu_assignment
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from alnair.model import api_types, names
from alnair.model.nodes import Gpu
from alnair.model.workload import GpuDemand, GpuRequest
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.gpus.gpu_assignment import assign

GOLDEN = Path(__file__).parents[3] / "golden"
NOW = float(calendar.timegm((2026, 11, 21, 12, 0, 0)))


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.json").read_text().rstrip("\n")


def test_an_assignment_is_written_as_the_golden_file_has_it() -> None:
    gpus = [Gpu(f"GPU-{i}", i, "P100", 16384) for i in range(3)]
    demand = GpuDemand(
        requests=(
            GpuRequest("prepare", whole=1, init=True),
            GpuRequest("train", whole=2),
            GpuRequest("watch", memory_mib=2048, compute=25),
        ),
        whole=2,
        memory_mib=2048,
        compute=25,
    )
    bookings = (Booking(0, 2048, 25), Booking(1, whole=True), Booking(2, whole=True))
    assert gpu_assignment(assign(demand, bookings, gpus), NOW) == golden("gpu-assignment")


def test_an_assignment_is_read_back_as_it_was_written() -> None:
    meta = wire.ObjectMeta(name="p", annotations={names.GPU_ASSIGNMENT: golden("gpu-assignment")})
    pod = PodProjector()(wire.PodWire(meta, wire.PodSpecWire()))
    assert pod.problem == ""
    assert gpu_assignment(pod.assignment, NOW) == golden("gpu-assignment")


def test_a_nodes_gpus_are_read_from_the_golden_file() -> None:
    text = golden("gpu-static")
    assert msgspec.json.encode(msgspec.json.decode(text, type=api_types.GpuStatic)).decode() == text
    meta = wire.ObjectMeta(name="n", annotations={names.GPU_STATIC: text})
    node = project_node(wire.NodeWire(meta))
    assert [(g.uuid, g.index, g.model, g.numa) for g in node.gpus] == [
        ("GPU-0", 0, "P100", 0),
        ("GPU-1", 1, "P100", 1),
        ("GPU-2", 2, "P100", 1),
    ]


def test_a_gpu_with_a_problem_is_read_from_the_golden_file() -> None:
    text = golden("gpu-static-unhealthy")
    assert msgspec.json.encode(msgspec.json.decode(text, type=api_types.GpuStatic)).decode() == text
    node = project_node(
        wire.NodeWire(wire.ObjectMeta(name="n", annotations={names.GPU_STATIC: text}))
    )
    assert [g.problem for g in node.gpus] == ["XID 79: the GPU has fallen off the bus", ""]


def test_a_gangs_plan_is_written_and_read_back_as_the_golden_file_has_it() -> None:
    plan = {"worker-0": ("node-a", {"train": [0, 3]}), "worker-1": ("node-b", {})}
    assert gang_plan(plan, NOW) == golden("gang-plan")
    meta = wire.ObjectMeta(name="g", annotations={names.GANG_PLAN: golden("gang-plan")})
    gang = GangProjector("scheduling.x-k8s.io/v1alpha1")(PodGroupWire(meta))
    assert gang.plan == plan
    assert gang.planned == NOW
