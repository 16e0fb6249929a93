"""What pods use, at `/metrics`: by container, by pod, and by container and GPU.

No label has a pid or an id that changes with a restart, and the number of series is bounded: beyond
it whole pods are left out, those without GPUs first, and counted. A pod's series end with the pod.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client.metrics_core import Metric

from alnair.kube.timestamps import timestamp
from alnair.model import usage
from alnair.model.api_types import Workload
from alnair.model.job_facts import Figure
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.profiler.pods.accounts import Account
from alnair.profiler.pods.gpu_use import Kind
from alnair.profiler.pods.window import STATS
from alnair.profiler.samples import CgroupSample
from alnair.serving.exposition import Labels, counter, gauge

#: Series of pods in one answer: 110 pods of 3 containers have 6,000.
MOST_SERIES: Final = 20_000
#: Samples of a roll-up, one a second: the usual time between scrapes.
ROLL_UP: Final = 15
_ROLLED_UP: Final = (
    usage.GPU_UTIL,
    usage.GPU_MEMORY_MIB,
    usage.CPU_CORES,
    usage.MEMORY_MIB,
)
_GIGA: Final = 1e9
_PRESSURES: Final = ("cpu", "memory", "io")
_Row = tuple[Labels, float]
_Containers = Sequence[tuple[Labels, CgroupSample]]
#: Pods with their labels, which all their series share.
_Pods = Sequence[tuple[Account, dict[str, str]]]


def pod_metrics(profiler: PodProfiler, most: int = MOST_SERIES) -> Iterator[Metric]:
    """Return all families.

    Args:
        profiler: Has the books.
        most: Series of pods, at most.
    """
    found, left_out = _shown(profiler, most)
    shown = [
        (pod, {"namespace": pod.namespace, "pod": pod.name, "node": profiler.node}) for pod in found
    ]
    containers = [
        ({**labels, "container": name}, sample)
        for pod, labels in shown
        for name, sample in sorted(pod.samples.items())
    ]
    yield from _cpu(containers)
    yield from _memory(containers)
    yield from _io(containers)
    yield from _gpus(shown)
    yield from _pods(profiler, shown)
    yield from _roll_ups(profiler, shown)
    yield from _workloads(profiler, shown)
    yield from _disagreements(profiler)
    yield from _itself(profiler, left_out)


def _shown(profiler: PodProfiler, most: int) -> tuple[list[Account], int]:
    """Return the pods that are shown, by their names, and how many are not."""
    # Of a pod made anew under its old name, the newer: a series twice makes all of it invalid.
    by_age = sorted(profiler.accounts.pods.values(), key=lambda pod: pod.started)
    pods = {(pod.namespace, pod.name): pod for pod in by_age}.values()
    room, kept = most, list[Account]()
    for pod in sorted(pods, key=lambda pod: (not (pod.gpus or pod.uses), pod.namespace, pod.name)):
        room -= _series(pod)
        if room < 0:
            break
        kept.append(pod)
    return sorted(kept, key=lambda pod: (pod.namespace, pod.name)), len(pods) - len(kept)


def _series(pod: Account) -> int:
    """Return how many series a pod has, at most."""
    return 22 + 14 * len(pod.samples) + 3 * len(pod.uses)


def _known(
    containers: _Containers, value: Callable[[CgroupSample], float | None], scale: float = 1
) -> Iterator[_Row]:
    for labels, sample in containers:
        if (found := value(sample)) is not None:
            yield labels, found / scale


def _cpu(containers: _Containers) -> Iterator[Metric]:
    yield counter(
        "alnair_container_cpu_usage_seconds_total",
        "Processor time used.",
        _known(containers, lambda one: one.cpu_ns, _GIGA),
    )
    yield counter(
        "alnair_container_cpu_periods_total",
        "Periods in which a limit of processor time held.",
        _known(containers, lambda one: one.periods),
    )
    yield counter(
        "alnair_container_cpu_throttled_periods_total",
        "Those in which it was throttled.",
        _known(containers, lambda one: one.throttled_periods),
    )
    yield counter(
        "alnair_container_cpu_throttled_seconds_total",
        "Time for which it was throttled.",
        _known(containers, lambda one: one.throttled_ns, _GIGA),
    )
    yield counter(
        "alnair_container_pressure_seconds_total",
        "Time in which some of its tasks waited for a resource.",
        (
            ({**labels, "resource": name}, sample.pressure[name] / 1e6)
            for labels, sample in containers
            for name in _PRESSURES
            if name in sample.pressure
        ),
    )


def _memory(containers: _Containers) -> Iterator[Metric]:
    yield gauge(
        "alnair_container_memory_working_set_bytes",
        "Memory that cannot be reclaimed: in use, without inactive files.",
        _known(containers, lambda one: one.memory_bytes),
    )
    yield gauge(
        "alnair_container_memory_peak_bytes",
        "The most memory that was in use so far, files included.",
        _known(containers, lambda one: one.memory_peak),
    )
    yield counter(
        "alnair_container_oom_kills_total",
        "Processes that were killed as there was no memory left.",
        _known(containers, lambda one: one.oom_kills),
    )


def _io(containers: _Containers) -> Iterator[Metric]:
    yield counter(
        "alnair_container_io_read_bytes_total",
        "Bytes read from disks.",
        _known(containers, lambda one: one.io_read),
    )
    yield counter(
        "alnair_container_io_written_bytes_total",
        "Bytes written to disks.",
        _known(containers, lambda one: one.io_write),
    )


def _gpus(shown: _Pods) -> Iterator[Metric]:
    rows = [
        ({**labels, "container": name, "gpu": uuid}, use)
        for pod, labels in shown
        for (name, uuid), use in sorted(pod.uses.items())
    ]
    yield gauge(
        "alnair_container_gpu_utilization_ratio",
        "Part of the GPU's time that it used in the last second; 0 of one that lies idle.",
        ((labels, use.util / 100) for labels, use in rows if use.util is not None),
    )
    yield gauge(
        "alnair_container_gpu_memory_copy_ratio",
        "Part of the last second in which the GPU's memory was read or written for it.",
        ((labels, use.memory_copy / 100) for labels, use in rows if use.memory_copy is not None),
    )
    yield gauge(
        "alnair_container_gpu_memory_used_bytes",
        "Memory of the GPU that the driver charges to it.",
        ((labels, use.memory_bytes) for labels, use in rows if use.memory_bytes is not None),
    )


def _pods(profiler: PodProfiler, shown: _Pods) -> Iterator[Metric]:
    networks = [(labels, pod.network) for pod, labels in shown if pod.network is not None]
    yield counter(
        "alnair_pod_network_received_bytes_total",
        "Bytes received; none of pods in the node's own network.",
        ((labels, sample.rx) for labels, sample in networks),
    )
    yield counter(
        "alnair_pod_network_sent_bytes_total",
        "Bytes sent.",
        ((labels, sample.tx) for labels, sample in networks),
    )
    yield counter(
        "alnair_pod_gpu_energy_joules_total",
        "Energy of its GPUs, its share by use.",
        ((labels, pod.energy_j) for pod, labels in shown if pod.energy_j is not None),
    )
    names = profiler.names()
    owners = {pod.uid: pod.owner for pod in names.values()}
    yield gauge(
        "alnair_pod_owner_info",
        "1; what made the pod: kind and name of its controller.",
        (
            ({**labels, "owner_kind": kind, "owner_name": name}, 1)
            for pod, labels in shown
            for kind, name in [owners.get(pod.uid, ("", ""))]
            if kind
        ),
    )


def _workloads(profiler: PodProfiler, shown: _Pods) -> Iterator[Metric]:
    """What pods do, as far as is known."""
    told = [
        (labels, found)
        for pod, labels in shown
        if (found := profiler.workloads.get(pod.uid)) is not None
    ]

    def of(value: Callable[[Workload], float | None]) -> Iterator[_Row]:
        for labels, found in told:
            if (number := value(found)) is not None:
                yield labels, number

    yield gauge(
        "alnair_pod_workload_info",
        "1; what the pod does: its type, framework, phase and bottleneck, empty if not known.",
        (
            (
                {
                    **labels,
                    "type": found.type or "",
                    "framework": found.framework or "",
                    "phase": found.phase or "",
                    "bottleneck": found.bottleneck or "",
                },
                1.0,
            )
            for labels, found in told
        ),
    )
    yield gauge(
        "alnair_pod_iteration_seconds",
        "Time of one iteration of its training.",
        of(lambda found: found.period_s),
    )
    yield gauge(
        "alnair_pod_model_parameters",
        "Parameters of its model, as its specification or its log says.",
        of(lambda found: _value(found.model.parameters) if found.model is not None else None),
    )
    yield gauge(
        "alnair_pod_model_weights_bytes",
        "Size of its model's weights; estimated where nobody says it.",
        (
            ({**labels, "estimated": str(_is_estimated(weights)).lower()}, mib)
            for labels, found in told
            if found.model is not None
            and (weights := found.model.weights_mib) is not None
            and (mib := weights.value * (1 << 20))
        ),
    )
    yield gauge("alnair_pod_progress_ratio", "Part that is done.", of(lambda found: found.progress))
    yield gauge(
        "alnair_pod_remaining_seconds",
        "Time until it is done, as it was foreseen at the last look.",
        of(lambda found: found.eta_s),
    )
    now = time.time()
    yield gauge(
        "alnair_pod_gpu_idle_seconds",
        "Time for which it has held GPUs without using them, once that is long.",
        of(lambda found: now - timestamp(found.idle_since) if found.idle_since else None),
    )
    yield gauge(
        "alnair_pod_gpu_memory_full_seconds",
        "Time within which its GPU memory will be full, if it goes on growing.",
        of(lambda found: found.memory_full_s),
    )
    yield gauge(
        "alnair_pod_slowdown_ratio",
        "Time of its steps beside the pods on its GPUs over that of its steps alone.",
        of(lambda found: found.slowdown),
    )


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _is_estimated(figure: Figure) -> bool:
    return figure.source.startswith("estimated")


def _roll_ups(profiler: PodProfiler, shown: _Pods) -> Iterator[Metric]:
    """What scrapes would miss between two seconds of theirs."""
    groups = {id(pod): group for group, pod in profiler.accounts.pods.items()}
    uids = [groups[id(pod)] for pod, _ in shown]
    found = profiler.accounts.roll_ups(uids, _ROLLED_UP, ROLL_UP)
    by_stat = [{**labels, "stat": stat} for _, labels in shown for stat in STATS]

    def over(metric: str, scale: float) -> Iterator[_Row]:
        values = found[:, _ROLLED_UP.index(metric)].reshape(-1) * scale
        return ((labels, v) for labels, v in zip(by_stat, values.tolist(), strict=True) if v == v)

    yield gauge(
        "alnair_pod_gpu_utilization_ratio",
        "Part of its GPUs' time that it used: mean, p95 and max of the last 15 seconds.",
        over(usage.GPU_UTIL, 0.01),
    )
    yield gauge(
        "alnair_pod_gpu_memory_used_bytes",
        "Memory of its GPUs: mean, p95 and max of the last 15 seconds.",
        over(usage.GPU_MEMORY_MIB, float(1 << 20)),
    )
    yield gauge(
        "alnair_pod_cpu_usage_cores",
        "Processors that it used: mean, p95 and max of the last 15 seconds.",
        over(usage.CPU_CORES, 1.0),
    )
    yield gauge(
        "alnair_pod_memory_working_set_bytes",
        "Memory that cannot be reclaimed: mean, p95 and max of the last 15 seconds.",
        over(usage.MEMORY_MIB, float(1 << 20)),
    )


def _disagreements(profiler: PodProfiler) -> Iterator[Metric]:
    """Of GPUs, not of pods: who it is about has an event, or a series of 0."""
    gpus = sorted(profiler.samples)
    unmapped = dict.fromkeys(gpus, 0)
    counts = {(gpu, kind): 0 for gpu in gpus for kind in (Kind.USES_NOT_GIVEN, Kind.GIVEN_IDLE)}
    for one in profiler.disagreements:
        if one.kind is Kind.UNMAPPED:
            unmapped[one.uuid] = one.count
        else:
            counts[one.uuid, one.kind] = counts.get((one.uuid, one.kind), 0) + 1
    yield gauge(
        "alnair_unmapped_processes",
        "Processes on a GPU of which nobody knows whose they are.",
        (({"gpu": gpu}, count) for gpu, count in sorted(unmapped.items())),
    )
    yield gauge(
        "alnair_gpu_attribution_differs",
        "Containers that use the GPU without having been given it, or were given it and are idle.",
        (({"gpu": gpu, "kind": str(kind)}, count) for (gpu, kind), count in sorted(counts.items())),
    )


def _itself(profiler: PodProfiler, left_out: int) -> Iterator[Metric]:
    cycles = profiler.cycles
    yield gauge(
        "alnair_scrape_age_seconds",
        "Time since the profiler last read; the figures of pods are as old.",
        [({}, time.monotonic() - cycles.at)] if cycles.at is not None else [],
    )
    yield counter("alnair_profiler_cycles_total", "Readings.", [({}, cycles.count)])
    yield counter("alnair_profiler_cycle_seconds_total", "Time in them.", [({}, cycles.seconds)])
    yield gauge(
        "alnair_profiler_longest_cycle_seconds",
        "The longest of the last minute.",
        [({}, cycles.longest)],
    )
    yield gauge(
        "alnair_profiler_left_out",
        "What is not shown or not read, as there is too much: pods, containers.",
        [({"what": "pods"}, left_out), ({"what": "containers"}, cycles.left_out)],
    )
    yield gauge(
        "alnair_profiler_outbox_pods",
        "Ended pods whose figures nobody has fetched yet.",
        [({}, profiler.kept.waiting)],
    )
    yield counter(
        "alnair_profiler_outbox_dropped_total",
        "Ended pods whose figures were thrown away, as nobody fetched them.",
        [({}, profiler.kept.dropped)],
    )
