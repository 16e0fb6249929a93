"""What a pod really used, as figures: written by agents, kept in the history, shown to people.

Units are in the names of the metrics. A metric that was not measured is absent, never 0.
"""

from typing import Annotated, Final

import msgspec

from alnair.model.api_types import Workload

#: Percent of a GPU's compute that the container used, 0 to 100 for each GPU.
GPU_UTIL: Final = "gpu_util"
#: Percent of time in which the GPU's memory was read or written for it.
GPU_MEMORY_COPY_UTIL: Final = "gpu_memory_copy_util"
GPU_MEMORY_MIB: Final = "gpu_memory_mib"
PCIE_RX_MIB_S: Final = "pcie_rx_mib_s"
PCIE_TX_MIB_S: Final = "pcie_tx_mib_s"
NVLINK_RX_MIB_S: Final = "nvlink_rx_mib_s"
NVLINK_TX_MIB_S: Final = "nvlink_tx_mib_s"
POWER_W: Final = "power_w"
CPU_CORES: Final = "cpu_cores"
#: Part of the CFS periods in which it was throttled, 0 to 1.
CPU_THROTTLED: Final = "cpu_throttled"
#: Working set: what cannot be reclaimed.
MEMORY_MIB: Final = "memory_mib"
IO_READ_MIB_S: Final = "io_read_mib_s"
IO_WRITE_MIB_S: Final = "io_write_mib_s"
NET_RX_MIB_S: Final = "net_rx_mib_s"
NET_TX_MIB_S: Final = "net_tx_mib_s"
#: Part of the time in which some task waited, from the kernel's pressure files, 0 to 1.
CPU_PRESSURE: Final = "cpu_pressure"
MEMORY_PRESSURE: Final = "memory_pressure"
IO_PRESSURE: Final = "io_pressure"


class Digest(msgspec.Struct, frozen=True):
    """A metric over a time: enough to rank, to size and to add up.

    Attributes:
        mean: Over time; with `seconds`, digests of several times can be merged.
        max: The largest sample of one second.
        p95: 95th percentile of the samples; of merged digests an upper bound.
        seconds: For how long it was measured.
        last: The newest sample; None once the pod has ended.
    """

    mean: float
    max: float
    p95: float
    seconds: float
    last: float | None = None


class UsedGpu(msgspec.Struct, frozen=True):
    """A GPU of which a pod has been given all or a part."""

    uuid: str
    model: str
    #: MiB of it that the pod may use.
    memory_mib: int
    whole: bool


class Controller(msgspec.Struct, frozen=True):
    """What controls a pod, as its owner reference says."""

    api_version: str
    kind: str
    name: str
    uid: str


class PodUsage(msgspec.Struct, frozen=True):
    """A pod's life on a node, until now or until its end; one line of the node's outbox.

    Attributes:
        v: 1.
        node: Where it runs.
        namespace: Of the pod.
        pod: Its name.
        uid: Its uid.
        started: When its first container was seen, seconds since the epoch.
        ended: When the last one had gone, None while there is one.
        metrics: Of the whole pod, summed over its containers (utilisation: mean over its GPUs).
        containers: The same by container.
        gpus: What it was given.
        energy_j: Energy of its GPUs in that time, its share by use; None if not measured.
        workload: What it did, as last told in its annotation.
        controller: What controls it; None if nothing does, or it is not known.
    """

    v: Annotated[int, msgspec.Meta(ge=1)]
    node: str
    namespace: str
    pod: str
    uid: str
    started: float
    ended: float | None = None
    metrics: dict[str, Digest] = {}
    containers: dict[str, dict[str, Digest]] = {}
    gpus: list[UsedGpu] = []
    energy_j: float | None = None
    workload: Workload | None = None
    controller: Controller | None = None
