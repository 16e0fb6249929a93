"""The metrics of the original Alnair's exporter, by their old names, for dashboards that have them.

Two things differ: there is no pid (a series for each process that ever was), and memory that is
called used is the memory that is used. Source: alnair-exporter, v0.4 and v0.5.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from prometheus_client.metrics_core import Metric

from alnair.node.inventory import Inventory
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.serving.exposition import counter, gauge

#: Fields of /proc/stat that the original told.
_MODES: Final = {"user": 1, "system": 3, "idle": 4}


def legacy_metrics(
    profiler: PodProfiler,
    containers: Iterable[VgpuContainer],
    inventory: Inventory,
    stat: Path = Path("/proc/stat"),
) -> Iterator[Metric]:
    """Return all families.

    Args:
        profiler: Has the books.
        containers: Those with slices.
        inventory: The node's GPUs.
        stat: The kernel's counters of its processors.
    """
    indices = {gpu.uuid: str(gpu.index) for gpu in inventory.gpus}
    uses: dict[tuple[str, str, str], list[float]] = {}
    for pod in profiler.accounts.pods.values():
        for (_, uuid), use in sorted(pod.uses.items()):
            sums = uses.setdefault((pod.namespace, pod.name, uuid), [0.0, 0.0, 0.0])
            sums[0] += use.util or 0.0
            sums[1] += use.memory_copy or 0.0
            sums[2] += use.memory_bytes or 0
    rows = [
        (
            {
                "nodeName": profiler.node,
                "namespace": namespace,
                "pod_name": pod_name,
                "gpu_uuid": uuid,
                "gpu_idx": indices.get(uuid, ""),
            },
            sums,
        )
        for (namespace, pod_name, uuid), sums in sorted(uses.items())
    ]
    for name, text, at in (
        ("alnair_gpu_util", "Percent of the GPU's time that the pod used.", 0),
        ("alnair_gpu_mem_util", "Percent of time in which the GPU's memory was used for it.", 1),
        ("alnair_gpu_mem_used", "Bytes of the GPU's memory that are charged to it.", 2),
    ):
        yield gauge(name, text, [(labels, sums[at]) for labels, sums in rows])
    slices = [
        (
            {
                "nodeName": profiler.node,
                "namespace": one.assignment.pod.namespace,
                "pod_name": one.assignment.pod.name,
            },
            one,
        )
        for one in sorted(containers, key=lambda one: one.since)
        if one.assignment.pod.name
    ]
    # A gauge, as the library gives a counter another name.
    yield gauge(
        "alnair_cuda_launch_kernel_cnt",
        "Kernels and graphs launched.",
        _summed((labels, _total(one, "launches")) for labels, one in slices),
    )
    yield gauge(
        "alnair_cuda_mem_used",
        "Bytes that the pod's processes hold, by their own account.",
        _summed(
            (labels, sum(one.held(row) for row in range(len(one.assignment.shares))))
            for labels, one in slices
        ),
    )
    yield counter(
        "alnair_cpustat_time_user_hertz_total",
        "Ticks of the node's processors.",
        [({"nodeName": profiler.node, **labels}, ticks) for labels, ticks in _ticks(stat)],
    )


def _total(container: VgpuContainer, name: str) -> float:
    return sum(device[name] for device in container.totals.devices)


def _summed(
    rows: Iterable[tuple[dict[str, str], float]],
) -> list[tuple[dict[str, str], float]]:
    """Return one row for each pod."""
    found: dict[tuple[str, ...], tuple[dict[str, str], float]] = {}
    for labels, value in rows:
        key = tuple(labels.values())
        found[key] = labels, found.get(key, (labels, 0.0))[1] + value
    return list(found.values())


def _ticks(stat: Path) -> Iterator[tuple[dict[str, str], int]]:
    try:
        lines = stat.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if words and words[0].startswith("cpu") and words[0] != "cpu":
            for mode, at in _MODES.items():
                yield {"cpu": words[0].removeprefix("cpu"), "mode": mode}, int(words[at])
