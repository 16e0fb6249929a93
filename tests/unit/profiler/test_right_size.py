"""Advice on GPUs leaves room, and is none where little is known or little would be saved."""

import msgspec
import pytest

from alnair.model import usage
from alnair.model.usage import Digest, PodUsage, UsedGpu
from alnair.profiler.right_size import advice
from kit.job_history import life


def used(util: float, memory: float, gpus: int = 1, seconds: float = 1000.0) -> PodUsage:
    metrics = {
        usage.GPU_UTIL: Digest(util / 2, util, util, seconds),
        usage.GPU_MEMORY_MIB: Digest(memory, memory, memory, seconds),
    }
    whole = [UsedGpu(f"GPU-{n}", "A100", 40960, whole=True) for n in range(gpus)]
    return life(metrics=metrics, containers={"main": metrics, "side": {}}, gpus=whole)


def test_a_pod_that_needs_little_of_its_gpu_is_advised_a_slice_with_room() -> None:
    found = advice([used(20.0, 4000.0), used(30.0, 8000.0)])
    assert found is not None
    assert found.container == "main"
    # 8000 MiB x 1.2 in steps of 256, 30 % x 1.25 in steps of 5.
    assert found.limits == {
        "nvidia.com/gpu": None,
        "alnair/vgpu-memory": "9728",
        "alnair/vgpu-compute": "40",
    }
    assert found.saves == pytest.approx(0.6)
    assert "30 % busy" in found.why


def test_a_pod_that_keeps_few_of_its_gpus_busy_is_advised_fewer() -> None:
    found = advice([used(20.0, 40000.0, gpus=8)])
    assert found is not None
    assert found.limits == {"nvidia.com/gpu": "2"}
    assert found.saves == 0.75


@pytest.mark.parametrize(
    "usages",
    [
        [],
        [used(90.0, 4000.0)],
        [used(20.0, 39000.0)],
        [used(90.0, 1000.0, gpus=8)],
        [used(20.0, 4000.0, seconds=10.0)],
        [used(20.0, 4000.0), used(20.0, 4000.0, gpus=2)],
        [life(gpus=[UsedGpu("GPU-1", "T4", 4096, whole=False)])],
        [msgspec.structs.replace(used(20.0, 400.0), containers={})],
    ],
)
def test_there_is_no_advice_where_it_would_save_little_or_nobody_knows(
    usages: list[PodUsage],
) -> None:
    assert advice(usages) is None
