"""What a pod asks of GPUs, and what is refused because it cannot be meant."""

from collections.abc import Mapping

import pytest

from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus, gpu_demand, whole_gpus
from alnair.model.workload import GpuDemand

GPU, MEMORY, COMPUTE = names.GPU, names.VGPU_MEMORY, names.VGPU_COMPUTE


def main(name: str = "main", **amounts: int) -> ContainerGpus:
    return ContainerGpus(name, _resources(amounts))


def init(name: str, **amounts: int) -> ContainerGpus:
    return ContainerGpus(name, _resources(amounts), init=True)


def sidecar(name: str, **amounts: int) -> ContainerGpus:
    return ContainerGpus(name, _resources(amounts), init=True, sidecar=True)


def _resources(amounts: Mapping[str, int]) -> dict[str, int]:
    known = {"whole": GPU, "mib": MEMORY, "percent": COMPUTE, "mig": names.MIG_PREFIX + "1g.10gb"}
    return {known[k]: v for k, v in amounts.items()}


def demand(*containers: ContainerGpus, **annotations: str) -> GpuDemand:
    texts = {
        "models": names.GPU_MODELS,
        "models_not": names.GPU_MODELS_NOT,
        "weights": names.GPU_MODEL_WEIGHTS,
        "policy": names.VGPU_POLICY,
        "priority": names.VGPU_PRIORITY,
        "isolation": names.VGPU_ISOLATION,
        "memory_policy": names.VGPU_MEMORY_POLICY,
        "host_memory": names.VGPU_HOST_MEMORY,
    }
    found = gpu_demand(containers, {texts[k]: v for k, v in annotations.items()})
    assert found is not None
    return found


def test_a_pod_without_gpus_demands_nothing() -> None:
    assert gpu_demand([], {}) is None
    assert gpu_demand([main()], {}) is None
    assert gpu_demand([main(whole=0, mib=0, percent=0)], {}) is None
    assert gpu_demand([main(mig=2)], {}) is None, "MIG devices are counted as what they are"


@pytest.mark.parametrize(
    ("containers", "want"),
    [
        ([main(whole=2)], (2, 0, 0)),
        ([main(mib=4096, percent=30)], (0, 4096, 30)),
        ([main(mib=64)], (0, 64, 0)),
        ([main("a", whole=1), main("b", mib=4096, percent=100)], (1, 4096, 100)),
        ([main("a", mig=1), main("b", mib=4096, mig=0)], (0, 4096, 0)),
        ([main("a", mib=1000, percent=60), main("b", mib=2000, percent=40)], (0, 3000, 100)),
        ([init("i", mib=9000, percent=100), main(mib=1000, percent=20)], (0, 9000, 100)),
        (
            [
                sidecar("s", mib=500, percent=50),
                init("i", mib=600, percent=50),
                main(mib=100, percent=10),
            ],
            (0, 1100, 100),
        ),
        ([init("i", whole=4), sidecar("s", whole=1), main(whole=2)], (4, 0, 0)),
        ([sidecar("s", whole=1), init("i", whole=4), main(whole=2)], (5, 0, 0)),
    ],
)
def test_the_demand_is_what_is_in_use_at_once(
    containers: list[ContainerGpus], want: tuple[int, int, int]
) -> None:
    found = demand(*containers)
    assert not found.problem
    assert (found.whole, found.memory_mib, found.compute) == want


def test_only_sidecars_among_init_containers_keep_what_they_have() -> None:
    found = demand(sidecar("s", whole=1), init("i", whole=1), main(whole=1))
    assert [(r.container, r.init) for r in found.requests] == [
        ("s", False),
        ("i", True),
        ("main", False),
    ]


def test_compute_is_hard_unless_the_policy_says_soft() -> None:
    assert demand(main(mib=64, percent=5)).hard
    assert demand(main(mib=64, percent=5), policy="hard").hard
    assert not demand(main(mib=64, percent=5), policy="soft").hard


def test_slices_yield_and_run_in_the_mps_server_where_the_pod_says_so() -> None:
    plain = demand(main(mib=64))
    assert (plain.low_priority, plain.mps) == (False, False)
    assert demand(main(mib=64), priority="low").low_priority
    assert demand(main(mib=64), isolation="mps").mps


def test_slices_have_memory_of_the_host_where_the_pod_says_so() -> None:
    for none in (demand(main(mib=64)), demand(main(mib=64), memory_policy="strict")):
        assert (none.swap, none.swap_mib(64), none.problem) == (False, 0, "")
    as_much = demand(main("a", mib=640), main("b", whole=1), memory_policy="swap")
    assert (as_much.swap_mib(640), as_much.problem) == (640, "")
    said = demand(main(mib=64), memory_policy="swap", host_memory="4194304")
    assert (said.swap_mib(64), said.problem) == (4194304, "")


def test_slices_borrow_where_the_pod_says_so() -> None:
    strict, soft = (demand(main(mib=64), memory_policy=policy) for policy in ("strict", "soft"))
    assert (strict.borrows, soft.borrows, soft.swap_mib(64), soft.problem) == (False, True, 0, "")


@pytest.mark.parametrize(
    "text", ["", "0", "63", "064", "8Gi", "1e3", "-64", "4194305", "٦٤", " 64"]
)
def test_memory_of_the_host_is_a_number_of_mib(text: str) -> None:
    problem = demand(main(mib=64), memory_policy="swap", host_memory=text).problem
    assert problem == (
        f"annotation {names.VGPU_HOST_MEMORY} is {text!r}: write MiB as a number, "
        "64 to 4194304, without a suffix"
    )


def test_models_are_a_set_however_they_are_written() -> None:
    found = demand(main(whole=1), models=" T4, A100 ,,T4")
    assert found.models == ("A100", "T4")


@pytest.mark.parametrize(
    ("why", "containers", "annotations", "words"),
    [
        (
            "more than one GPU as a share",
            [main(mib=4096, percent=130)],
            {},
            "container 'main' asks for 130 % of one GPU",
        ),
        (
            "containers that together exceed the GPU they share",
            [main("a", mib=4096, percent=60), main("b", mib=4096, percent=60)],
            {},
            "containers a, b together ask for 120 % of the one GPU",
        ),
        (
            "a sidecar and an init container together",
            [sidecar("s", mib=64, percent=60), init("i", mib=64, percent=60)],
            {},
            "together ask for 120 %",
        ),
        (
            "a fraction and whole GPUs in one container",
            [main(whole=1, mib=4096)],
            {},
            "asks for whole GPUs (nvidia.com/gpu) and a slice of one",
        ),
        (
            "whole GPUs and compute in one container",
            [main(whole=1, percent=30)],
            {},
            "asks for whole GPUs (nvidia.com/gpu) and a slice of one",
        ),
        (
            "a slice and MIG devices in one container",
            [main(mib=4096, mig=1)],
            {},
            "container 'main' asks for MIG devices (nvidia.com/mig-…) beside whole GPUs or a slice",
        ),
        (
            "compute without memory",
            [main(percent=30)],
            {},
            "asks for alnair/vgpu-compute without alnair/vgpu-memory",
        ),
        (
            "memory in GiB",
            [main(mib=8, percent=30)],
            {},
            "the unit is MiB and the least is 64: write 8192 for 8 GiB",
        ),
        (
            "memory with a suffix",
            [main(mib=8 << 30)],
            {},
            "no GPU has that many: write 8192, without a suffix, if bytes were meant",
        ),
        ("memory just below the least", [main(mib=63)], {}, "the least is 64"),
        (
            "0 GPUs with a GPU model",
            [main(whole=0)],
            {"models": "A100"},
            "no container asks for a GPU",
        ),
        ("no GPUs with a GPU model", [], {"models": "A100"}, "no container asks for a GPU"),
        ("an empty list of models", [main(whole=1)], {"models": " , "}, "names no model"),
        ("an unknown policy", [main(mib=64)], {"policy": "Soft"}, "is 'Soft': write hard or soft"),
        ("an unknown priority", [main(mib=64)], {"priority": "high"}, "is 'high': write low or"),
        ("an unknown isolation", [main(mib=64)], {"isolation": "mig"}, "is 'mig': write mps or"),
        (
            "an unknown policy of memory",
            [main(mib=64)],
            {"memory_policy": "hard", "host_memory": "x"},
            "is 'hard': write strict, swap or soft",
        ),
        (
            "memory of the host that is not asked for",
            [main(mib=64)],
            {"host_memory": "64"},
            "does nothing without the annotation ai.centaurus.io/vgpu-memory-policy: swap",
        ),
        (
            "memory of the host and no slice",
            [main(whole=1)],
            {"memory_policy": "swap"},
            "is 'swap', but no container asks for a slice of a GPU, and whole GPUs have no limit",
        ),
        (
            "loans and no slice",
            [main(whole=1)],
            {"memory_policy": "soft"},
            "is 'soft', but no container asks for a slice of a GPU, and whole GPUs have no limit",
        ),
        (
            "loans and memory of the host",
            [main(mib=64)],
            {"memory_policy": "soft", "host_memory": "64"},
            "does nothing without the annotation ai.centaurus.io/vgpu-memory-policy: swap",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_remedy(
    why: str, containers: list[ContainerGpus], annotations: dict[str, str], words: str
) -> None:
    assert words in demand(*containers, **annotations).problem, why


def test_models_are_accepted_refused_and_liked() -> None:
    found = demand(main(whole=1), models_not=" T4, P100", weights="H100 = 100, A100=60 ")
    assert not found.problem
    assert (found.models_not, found.weights) == (("P100", "T4"), (("A100", 60), ("H100", 100)))
    assert found.accepts("H100")
    assert not found.accepts("T4")
    assert not demand(main(whole=1), models="A100").accepts("H100")


@pytest.mark.parametrize("weights", ["", "H100", "H100=0", "H100=101", "H100=x", "=5", "A=1,,B=2"])
def test_weights_are_read_strictly(weights: str) -> None:
    problem = demand(main(whole=1), weights=weights).problem
    assert problem.startswith(f"annotation {names.GPU_MODEL_WEIGHTS} has ")
    assert "write MODEL=WEIGHT" in problem


def test_whole_gpus_are_the_demand_of_a_container_for_so_many() -> None:
    assert whole_gpus(3) == demand(main(whole=3))
    assert whole_gpus(0) is None


def test_the_sets_of_gpu_resources_differ_by_the_slot_that_admission_adds() -> None:
    assert set(names.GPU_REQUESTS) == {GPU, MEMORY, COMPUTE}
    assert set(names.GPU_RESOURCES) - set(names.GPU_REQUESTS) == {names.VGPU}
    assert set(names.GPU_REQUESTS) - set(names.SLICE_RESOURCES) == {GPU}
