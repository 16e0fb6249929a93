"""The figures of whole GPUs at `/metrics`: use, memory, health and errors."""

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from alnair.node.health import GpusHealth
from alnair.node.load import GpusLoad
from alnair.serving.exposition import counter, gauge


def gpu_metrics(health: GpusHealth, load: GpusLoad) -> Iterator[Metric]:
    """Return all families; those of a GPU's use only while it is measured."""
    loads = sorted(load.gpus().items())
    yield gauge(
        "alnair_gpu_healthy",
        "Whether the GPU takes new containers.",
        (({"gpu": uuid}, float(state.is_healthy)) for uuid, state in sorted(health.states.items())),
    )
    yield counter(
        "alnair_gpu_xid_errors_total",
        "Errors of the GPU that the driver reported, by number; programs' own included.",
        (
            ({"gpu": uuid, "xid": str(xid)}, count)
            for (uuid, xid), count in sorted(health.xids.items())
        ),
    )
    yield gauge(
        "alnair_gpu_late",
        "Whether the GPU has yet to answer, so that nothing is known of it now; after 10 s it is "
        "unhealthy.",
        (({"gpu": uuid}, float(uuid in load.late)) for uuid in sorted(health.states)),
    )
    yield counter(
        "alnair_gpu_looks_skipped_total",
        "Looks at the GPUs that were left out, as the one before took too long.",
        [({}, load.skipped)],
    )
    yield gauge(
        "alnair_gpu_unmapped_processes",
        "Processes that use the GPU by the driver's samples, and not by its list.",
        (({"gpu": uuid}, float(count)) for uuid, count in sorted(load.unmapped.items())),
    )
    yield gauge(
        "alnair_gpu_utilization_ratio",
        "Part of the last half minute in which kernels ran.",
        (({"gpu": uuid}, found.util / 100) for uuid, found in loads),
    )
    yield gauge(
        "alnair_gpu_memory_used_bytes",
        "Memory of the GPU in use, with the driver's own part.",
        (({"gpu": uuid}, found.memory_bytes) for uuid, found in loads),
    )
    yield gauge(
        "alnair_mig_memory_used_bytes",
        "Memory in use of a MIG device; those of one GPU instance share it.",
        (
            ({"gpu": uuid, "mig": mig}, used)
            for uuid, devices in sorted(load.mig.items())
            for mig, used in sorted(devices.items())
        ),
    )
