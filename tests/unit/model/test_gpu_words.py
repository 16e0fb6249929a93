"""What pods ask of GPUs, in words."""

import pytest

from alnair.model.gpu_words import in_words
from alnair.model.workload import GpuDemand


@pytest.mark.parametrize(
    ("demands", "words"),
    [
        ([GpuDemand(whole=1)], "1 GPU"),
        ([GpuDemand(whole=4), None, GpuDemand(whole=4)], "8 GPUs"),
        ([GpuDemand(memory_mib=8192, compute=30)], "a slice of 8192 MiB and 30 % of a GPU"),
        ([GpuDemand(memory_mib=8192)] * 2, "2 slices of 8192 MiB of a GPU"),
        (
            [GpuDemand(whole=1, memory_mib=512), GpuDemand(memory_mib=256)],
            "1 GPU and a slice of 512 MiB of a GPU and a slice of 256 MiB of a GPU",
        ),
        ([GpuDemand(memory_mib=64 + n) for n in range(4)], "4 slices of GPUs"),
        ([], "0 GPUs"),
    ],
)
def test_whole_gpus_and_slices_are_told_apart(demands: list[GpuDemand | None], words: str) -> None:
    assert in_words(demands) == words
