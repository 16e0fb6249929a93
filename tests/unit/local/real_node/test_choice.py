"""Which real node a cluster has: as asked for, otherwise as before."""

import pytest

from alnair.local.errors import InvalidArgumentError
from alnair.local.real_node.choice import RealNodeWish, choose
from alnair.local.state import RealNodeState

BEFORE = RealNodeState(slot=4, gpus=8, gpu_model="t4")


@pytest.mark.parametrize(
    ("wish", "before", "chosen"),
    [
        (RealNodeWish(), None, None),
        (RealNodeWish(wanted=True), None, RealNodeState(0, 2, "h100")),
        (RealNodeWish(True, 4, "v100"), None, RealNodeState(0, 4, "v100")),
        (RealNodeWish(), BEFORE, BEFORE),
        (RealNodeWish(gpus=1), BEFORE, RealNodeState(4, 1, "t4")),
        (RealNodeWish(wanted=False), BEFORE, None),
    ],
)
def test_the_choice(
    wish: RealNodeWish, before: RealNodeState | None, chosen: RealNodeState | None
) -> None:
    assert choose(wish, before, lambda present: present or 0) == chosen


@pytest.mark.parametrize("wanted", [None, False])
def test_gpus_without_a_real_node_are_refused(wanted: bool | None) -> None:
    with pytest.raises(InvalidArgumentError, match="add --real-node"):
        choose(RealNodeWish(wanted, gpus=4), None, lambda present: present or 0)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (RealNodeWish(gpu_model="h1000"), r"no fake GPU 'h1000': choose among .*h100, h200"),
        (RealNodeWish(gpus=17), "1 to 16 fake GPUs"),
    ],
)
def test_a_gpu_that_cannot_be_is_refused(wish: RealNodeWish, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        wish.check()
