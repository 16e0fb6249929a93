"""Which real node a cluster has, from what is asked for and what was before."""

from collections.abc import Callable
from dataclasses import dataclass

from alnair.local.errors import InvalidArgumentError
from alnair.local.real_node import fake_gpu
from alnair.local.state import RealNodeState

#: Two GPUs, so that a choice between them can go wrong.
GPUS = 2
GPU_MODEL = "h100"
#: As many as the fake GPU's state has room for.
MOST_GPUS = 16


@dataclass(frozen=True)
class RealNodeWish:
    """What was asked for.

    Attributes:
        wanted: Whether there shall be one; None: as before.
        gpus: How many fake GPUs; None: as before.
        gpu_model: Their profile; None: as before.
        installed: Whether Alnair is installed as pods, by its chart; None: as before.
    """

    wanted: bool | None = None
    gpus: int | None = None
    gpu_model: str | None = None
    installed: bool | None = None

    def check(self) -> None:
        """Refuses what is wrong whatever there was before.

        Raises:
            InvalidArgumentError: There is no such GPU.
        """
        if self.gpu_model is not None:
            fake_gpu.check_model(self.gpu_model)
        if self.gpus is not None and not 1 <= self.gpus <= MOST_GPUS:
            raise InvalidArgumentError(f"a real node has 1 to {MOST_GPUS} fake GPUs")


def is_wanted(wish: RealNodeWish, before: RealNodeState | None) -> bool:
    """Whether there shall be a real node."""
    return before is not None if wish.wanted is None else wish.wanted


def is_installed(wish: RealNodeWish, before: RealNodeState | None) -> bool:
    """Whether there shall be one, with Alnair as its pods."""
    if not is_wanted(wish, before):
        return False
    return bool(before and before.installed) if wish.installed is None else wish.installed


def choose(
    wish: RealNodeWish,
    before: RealNodeState | None,
    free_slot: Callable[[int | None], int],
) -> RealNodeState | None:
    """The node that shall be; None: none.

    Args:
        wish: What was asked for.
        before: The node that the cluster had.
        free_slot: Finds a network that nobody else has: this one, if it can be.

    Raises:
        InvalidArgumentError: GPUs are asked for, and there is no real node to have them.
    """
    if not is_wanted(wish, before):
        if wish.gpus or wish.gpu_model:
            raise InvalidArgumentError(
                "--real-gpus and --real-gpu-model are for a real node: add --real-node"
            )
        if wish.installed:
            raise InvalidArgumentError("--install needs a node for pods: add --real-node")
        return None
    gpus, model = (before.gpus, before.gpu_model) if before else (GPUS, GPU_MODEL)
    return RealNodeState(
        slot=free_slot(before.slot if before else None),
        gpus=wish.gpus or gpus,
        gpu_model=wish.gpu_model or model,
        installed=is_installed(wish, before),
    )
