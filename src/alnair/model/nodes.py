"""What the cluster is made of: nodes and their GPUs."""

import msgspec

from alnair.model import names


class Gpu(msgspec.Struct, frozen=True, gc=False):
    """One physical GPU as the node's agent describes it."""

    uuid: str
    index: int
    model: str
    memory_mib: int
    numa: int | None = None
    #: Index of another GPU of the node → kind of link, such as `NV12`, `PIX` or `SYS`; pairs.
    links: tuple[tuple[int, str], ...] = ()
    #: Why nothing new may be placed on it, for people; empty if it is healthy.
    problem: str = ""


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A taint of a node; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""


class Image(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A container image on a node, with all its names; `size` in bytes."""

    names: tuple[str, ...]
    size: int


class GpuLoad(msgspec.Struct, frozen=True, gc=False):
    """What a GPU does, as measured: percent of its time, MiB of its memory in use.

    `measured` is when these values were first true, seconds since the epoch.
    """

    uuid: str
    util: float
    memory_used_mib: int
    measured: float


class Node(msgspec.Struct, frozen=True):
    """A node, reduced to what scheduling needs.

    `allocatable` is in base units: millicores for `cpu`, bytes, counts.
    """

    name: str
    allocatable: dict[str, int]
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    gpus: tuple[Gpu, ...] = ()
    #: Why the node's GPU description was not usable, for people; empty if it was.
    problem: str = ""
    images: tuple[Image, ...] = ()
    #: Measured loads of its GPUs, as far as there are any.
    loads: tuple[GpuLoad, ...] = ()
    #: Which of its load reports are ignored, and why; empty if none are.
    ignored_loads: str = ""
    #: The Lease that its agent renews.
    agent_lease: str = ""

    @property
    def gpu_count(self) -> int:
        """Number of its GPUs; what it has to give out, if nobody describes them."""
        return len(self.gpus) or self.allocatable.get(names.GPU, 0)
