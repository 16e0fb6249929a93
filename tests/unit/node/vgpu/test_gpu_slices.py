"""What the GPUs of a node can give."""

import pytest

from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.gpu_slices import by_uuid, overbooked, unlike_gpus

GPUS = (NvmlGpu(0, "GPU-a", "T", 1000 << 20), NvmlGpu(1, "GPU-b", "T", 2000 << 20))


def wanted(*shares: Share) -> ContainerSlices:
    return ContainerSlices("x", ContainerMatch(pod="uid"), shares)


def test_a_gpu_is_named_by_its_index_or_its_uuid() -> None:
    found = by_uuid(GPUS, wanted(Share("1"), Share("GPU-a"), Share("7")))
    assert [share.uuid for share in found.shares] == ["GPU-b", "GPU-a", "7"]


@pytest.mark.parametrize(
    ("share", "known", "said"),
    [
        (Share("GPU-a", 1000), True, ""),
        (
            Share("GPU-a", 1001),
            True,
            "1001 MiB of GPU 0, which has 1000: give less, or 0 for no limit",
        ),
        (Share("GPU-c"), True, "there is no GPU GPU-c: this node has 0 (GPU-a), 1 (GPU-b)"),
        (Share("MIG-c"), True, ""),
        (Share("GPU-c"), False, ""),
        (Share("0"), False, "GPU 0 is not known (no driver): give its UUID"),
    ],
)
def test_what_a_node_cannot_give_is_said(share: Share, known: bool, said: str) -> None:
    assert unlike_gpus(GPUS if known else (), wanted(share), "no driver") == said


def test_slices_that_are_too_much_together_are_told() -> None:
    mine = wanted(Share("GPU-a", 600, 50))
    others = [Share("GPU-a", 600, 60), Share("GPU-b", 9000, 200)]
    assert overbooked(GPUS, mine, [*mine.shares]) == ""
    assert overbooked(GPUS, mine, [*mine.shares, *others]) == (
        "all containers together may use 110 % of GPU 0 and 1200 MiB of GPU 0, which has 1000"
    )
