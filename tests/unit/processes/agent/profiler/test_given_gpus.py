"""Which container was given which GPU."""

from types import SimpleNamespace
from typing import Any

from alnair.model.usage import UsedGpu
from alnair.node.inventory import GpuFacts, Inventory, MigDevice
from alnair.node.load import GpuHolder
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.processes.agent.profiler.given_gpus import (
    given_gpus,
    names_by_gpus,
    names_of_processes,
    used_gpus,
)
from alnair.profiler.pods.gpu_use import Given, Holder
from alnair.profiler.samples import ContainerKey, GpuSample, ProcessSample


def sliced(pod: OwningPod, *shares: Share) -> Any:
    slices = ContainerSlices("c", ContainerMatch(pod=pod.uid), shares, pod)
    devices = [{"charged_ns": 7 + row} for row, _ in enumerate(shares)]
    return SimpleNamespace(assignment=slices, totals=SimpleNamespace(devices=devices))


def test_slices_whole_gpus_and_mig_devices_are_given() -> None:
    pod, other = OwningPod("ns", "a", "uid-a", "main"), OwningPod("ns", "b", "uid-b", "main")
    by_hand = OwningPod("", "", "", "")
    found = given_gpus(
        [
            sliced(pod, Share("GPU-1", 1000, 20), Share("GPU-2", 500)),
            sliced(by_hand, Share("GPU-1")),
        ],
        [GpuHolder(other, ("GPU-3", "MIG-1"))],
    )
    mine, theirs = Holder("uid-a", "main"), Holder("uid-b", "main")
    assert found == [
        Given(mine, "GPU-1", whole=False, memory_mib=1000, charged_ns=7),
        # Nothing holds it back, so nothing is charged.
        Given(mine, "GPU-2", whole=False, memory_mib=500, charged_ns=None),
        Given(theirs, "GPU-3", whole=True),
        Given(theirs, "MIG-1", whole=True),
    ]
    gpu = GpuFacts(0, "GPU-3", "H100", 81_559, 0)
    cut = GpuFacts(1, "GPU-4", "H100", 81_559, 1, mig=True)
    part = MigDevice("MIG-1", "1g.10gb", 1, 0, 9_728)
    inventory = Inventory("1", (gpu, GpuFacts(1, cut.uuid, cut.model, 1, 1, mig_devices=(part,))))
    assert used_gpus(found, inventory) == {
        "uid-a": [
            UsedGpu("GPU-1", "", 1000, whole=False),
            UsedGpu("GPU-2", "", 500, whole=False),
        ],
        "uid-b": [
            UsedGpu("GPU-3", "H100", 81_559, whole=True),
            UsedGpu("MIG-1", "H100 1g.10gb", 9_728, whole=True),
        ],
    }


def test_two_slices_of_one_gpu_add_up_for_the_pod() -> None:
    given = [
        Given(Holder("uid-a", name), "GPU-1", whole=False, memory_mib=1000) for name in ("x", "y")
    ]
    assert used_gpus(given, Inventory()) == {"uid-a": [UsedGpu("GPU-1", "", 2000, whole=False)]}


def test_processes_belong_to_containers_by_name() -> None:
    places = {1: ("uid-a", "id-1"), 2: ("uid-a", "unknown"), 3: ("", ""), 4: ("uid-z", "id-9")}
    assert names_of_processes(places, {ContainerKey("uid-a", "id-1"): "main"}.get) == {
        1: Holder("uid-a", "main"),
        2: Holder("uid-a", ""),
        3: None,
        4: Holder("uid-z", ""),
    }


def test_a_pod_from_a_file_holds_its_gpu_by_the_uid_of_its_groups() -> None:
    pod = OwningPod("ns", "a", "copy", "main")
    found = given_gpus(
        [sliced(pod, Share("GPU-1", 1000, 20))], [GpuHolder(pod, ("GPU-3",))], {"copy": "hash"}
    )
    assert {one.holder for one in found} == {Holder("hash", "main")}


def test_a_container_is_named_by_the_gpu_that_only_one_of_its_pod_was_given() -> None:
    given = [
        Given(Holder("uid-a", "main"), "GPU-1", whole=True),
        Given(Holder("uid-b", "left"), "GPU-2", whole=False),
        Given(Holder("uid-b", "right"), "GPU-2", whole=False),
        Given(Holder("uid-c", "part"), "MIG-1", whole=True),
    ]
    places = {1: ("uid-a", "id-1"), 2: ("uid-b", "id-2"), 3: ("uid-c", "id-3"), 4: ("", "")}
    processes = tuple(ProcessSample(pid) for pid in (1, 2, 3, 4, 5))
    cut = GpuSample(0.0, mig={"MIG-1": GpuSample(0.0, processes=processes)})
    whole = GpuSample(0.0, processes=processes)
    assert names_by_gpus(given, {"GPU-1": whole, "GPU-2": whole, "GPU-3": cut}, places) == {
        ContainerKey("uid-a", "id-1"): "main",
        ContainerKey("uid-c", "id-3"): "part",
    }
