"""What the driver says of GPUs, at `/metrics`: power, heat, links, and the counters of hardware."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from alnair.node.gpu_looks import GpuLook
from alnair.node.inventory import Inventory
from alnair.profiler.samples import GpuSample
from alnair.serving.exposition import Labels, counter, gauge

#: Seconds after which a look says nothing of now.
FRESH: Final = 15.0


class GpuSamples:
    """Holds the last look, and tells it while it says something of now.

    Args:
        node: Name of this node.
        inventory: The node's GPUs.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        node: str,
        inventory: Callable[[], Inventory],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._inventory = inventory
        self._clock = clock
        self._look: GpuLook | None = None

    def take(self, seen: GpuLook) -> None:
        """Take in a look at the GPUs."""
        self._look = seen

    def metrics(self) -> Iterator[Metric]:
        """Return all families."""
        look = self._look
        is_fresh = look is not None and self._clock() - look.now <= FRESH
        samples = sorted(look.samples.items()) if look is not None and is_fresh else []

        def of(value: Callable[[GpuSample], float | None]) -> Iterable[tuple[Labels, float]]:
            for uuid, sample in samples:
                if (found := value(sample)) is not None:
                    yield {"gpu": uuid}, found

        yield gauge(
            "alnair_gpu_info",
            "1; which GPU of which node it is.",
            (
                (
                    {
                        "gpu": one.uuid,
                        "node": self._node,
                        "index": str(one.index),
                        "model": one.model,
                    },
                    1.0,
                )
                for one in self._inventory().gpus
            ),
        )
        yield gauge(
            "alnair_gpu_memory_total_bytes", "Memory that it has.", of(lambda s: s.memory_total)
        )
        yield gauge(
            "alnair_gpu_memory_copy_ratio",
            "Part of the last second in which its memory was read or written.",
            of(lambda s: None if s.memory_copy is None else s.memory_copy / 100),
        )
        yield gauge("alnair_gpu_power_watts", "Power that it draws.", of(lambda s: s.power_w))
        yield gauge("alnair_gpu_temperature_celsius", "Its heat.", of(lambda s: s.temperature_c))
        yield counter(
            "alnair_gpu_energy_joules_total",
            "Energy that it used; begins anew with the driver.",
            of(lambda s: s.energy_j),
        )
        yield counter(
            "alnair_gpu_link_bytes_total",
            "Bytes over its links: pcie or nvlink, received or sent.",
            (
                ({"gpu": uuid, "link": link, "direction": direction}, float(count))
                for uuid, sample in samples
                for link, direction, count in _links(sample)
                if count is not None
            ),
        )
        yield gauge(
            "alnair_gpu_throttled",
            "1; why its clock is lowered now.",
            (
                ({"gpu": uuid, "reason": reason}, 1.0)
                for uuid, sample in samples
                for reason in sample.throttle
            ),
        )
        yield gauge(
            "alnair_gpu_hardware_active_ratio",
            "Part of the last second in which a unit was at work, where the GPU counts it.",
            (
                ({"gpu": uuid, "unit": unit}, ratio)
                for uuid, sample in samples
                for unit, ratio in sorted(sample.profiling.items())
            ),
        )


def _links(sample: GpuSample) -> Iterator[tuple[str, str, int | None]]:
    yield "pcie", "received", sample.pcie_rx
    yield "pcie", "sent", sample.pcie_tx
    yield "nvlink", "received", sample.nvlink_rx
    yield "nvlink", "sent", sample.nvlink_tx
