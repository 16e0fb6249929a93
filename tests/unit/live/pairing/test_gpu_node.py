"""Which node is measured on, and whether it offers MPS."""

import pytest

from alnair.live.pairing.gpu_node import _described, check_mps
from alnair.model import names
from alnair.node.pairing.workload import RunError

STATIC = (
    '{"v": 1, "t": "2026-01-01T00:00:00Z", "gpus": [{"uuid": "G", "index": 0, "model": "T4",'
    ' "memory_mib": 16384}]}'
)


@pytest.mark.parametrize(("tier", "offers"), [("B-C", True), ("B-B", False), ("none-D", False)])
def test_a_node_without_mps_is_refused_before_anything_is_made(tier: str, *, offers: bool) -> None:
    labels, annotations = {names.VGPU_TIER: tier}, {names.GPU_STATIC: STATIC}
    node = {"metadata": {"name": "n", "labels": labels, "annotations": annotations}}
    found = _described(node)
    assert found is not None
    assert found.offers_mps is offers
    if offers:
        check_mps(found)
    else:
        with pytest.raises(RunError, match="node n offers no MPS"):
            check_mps(found)
