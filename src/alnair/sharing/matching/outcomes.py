"""What may come out when a container is about to start."""

from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.model.api_types import AssignedGpu
from alnair.sharing.matching.node_state import PodOnNode

#: How the reason of a `Wait` ends.
AGAIN: Final = "the kubelet tries again"


class ContainerStart(msgspec.Struct, frozen=True):
    """A container, the parts of GPUs that it gets, and the CDI name that stands for them."""

    name: str
    parts: tuple[AssignedGpu, ...]
    device: str


class Start(msgspec.Struct, frozen=True):
    """It may start: make these containers ready.

    There are several if a container uses the devices of an init container before it again: the
    kubelet's call does not say which of them it is about.
    """

    pod: PodOnNode
    containers: tuple[ContainerStart, ...]


class Choose(msgspec.Struct, frozen=True):
    """Nobody gave the pod GPUs: choose some, write them down, and decide again.

    Attributes:
        pod: The pod.
        allocated: Container → ids of `nvidia.com/gpu` that the kubelet allocated to it.
    """

    pod: PodOnNode
    allocated: Mapping[str, frozenset[str]]


class Wait(msgspec.Struct, frozen=True):
    """It cannot be said yet: let this start fail, the kubelet tries again."""

    reason: str


class Refuse(msgspec.Struct, frozen=True):
    """It must not start.

    Attributes:
        reason: For people: what is wrong, and what to do.
        is_final: The pod's own spec is at fault or it has ended, so a replacement would fare no
            better. If not, evict the pod: another one may get other GPUs.
    """

    reason: str
    is_final: bool
