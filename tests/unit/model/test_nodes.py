"""What is read off a node."""

from alnair.model import names
from alnair.model.nodes import Gpu, Node


def test_gpus_are_counted_as_described_or_else_as_given_out() -> None:
    described = tuple(Gpu(f"GPU-{i}", i, "T4", 15360) for i in range(2))
    assert Node("n", {names.GPU: 3}, gpus=described).gpu_count == 2
    assert Node("n", {names.GPU: 3}).gpu_count == 3
    assert Node("n", {}).gpu_count == 0
