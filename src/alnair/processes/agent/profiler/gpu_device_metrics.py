"""What each GPU as a whole does, at `/metrics`, as far as the driver says it."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from alnair.node.inventory import Inventory
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.profiler.samples import GpuSample
from alnair.serving.exposition import Labels, counter, gauge

#: Parts of a GPU that its hardware counts.
_PARTS: Final = ("sm_active", "sm_occupancy", "tensor_active", "dram_active")
#: Links, by the fields of a sample.
_LINKS: Final = (
    ("pcie", "received", "pcie_rx"),
    ("pcie", "sent", "pcie_tx"),
    ("nvlink", "received", "nvlink_rx"),
    ("nvlink", "sent", "nvlink_tx"),
)


def gpu_device_metrics(profiler: PodProfiler, inventory: Inventory) -> Iterator[Metric]:
    """Return all families.

    Args:
        profiler: Has the samples.
        inventory: The node's GPUs.
    """
    samples = sorted(profiler.samples.items())

    def of(value: Callable[[GpuSample], float | None]) -> Iterator[tuple[Labels, float]]:
        for uuid, sample in samples:
            if (found := value(sample)) is not None:
                yield {"gpu": uuid, "node": profiler.node}, found

    yield gauge(
        "alnair_gpu_info",
        "1; the GPU's model and its number on the node.",
        (
            ({"gpu": g.uuid, "node": profiler.node, "model": g.model, "index": str(g.index)}, 1)
            for g in inventory.gpus
        ),
    )
    yield gauge("alnair_gpu_power_watts", "Power.", of(lambda one: one.power_w))
    yield counter(
        "alnair_gpu_energy_joules_total",
        "Energy since the driver was loaded.",
        of(lambda one: one.energy_j),
    )
    yield gauge("alnair_gpu_temperature_celsius", "Temperature.", of(lambda one: one.temperature_c))
    yield gauge(
        "alnair_gpu_memory_total_bytes",
        "All memory that it has.",
        of(lambda one: one.memory_total),
    )
    yield gauge(
        "alnair_gpu_memory_copy_ratio",
        "Part of the last second in which its memory was read or written.",
        of(lambda one: None if one.memory_copy is None else one.memory_copy / 100),
    )
    yield counter(
        "alnair_gpu_link_bytes_total",
        "Bytes over its links: PCIe and NVLink, received and sent.",
        (
            ({"gpu": uuid, "node": profiler.node, "link": link, "direction": direction}, count)
            for uuid, sample in samples
            for link, direction, field in _LINKS
            if (count := getattr(sample, field)) is not None
        ),
    )
    yield gauge(
        "alnair_gpu_throttled",
        "1; a reason for which its clock is lowered now.",
        (
            ({"gpu": uuid, "node": profiler.node, "reason": reason}, 1)
            for uuid, sample in samples
            for reason in sample.throttle
        ),
    )
    yield gauge(
        "alnair_dcgm_exporter_up",
        "Whether the dcgm-exporter that the agent was told of can be read.",
        [({}, float(not profiler.dcgm.problem))] if profiler.dcgm is not None else [],
    )
    yield gauge(
        "alnair_gpu_active_ratio",
        "What its hardware counts, where that can be read: how busy its parts were.",
        (
            ({"gpu": uuid, "node": profiler.node, "part": part}, sample.profiling[part])
            for uuid, sample in samples
            for part in _PARTS
            if part in sample.profiling
        ),
    )
