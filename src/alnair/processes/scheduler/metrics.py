"""The scheduler's figures at `/metrics`: kube-scheduler's names where it has the figure.

Everything is read when somebody asks: what the engine counted, and what its present state is.
"""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric

from alnair.model import names
from alnair.scheduler.advice.census import GpuCensus, SchedulerFigures
from alnair.scheduler.metric_counters import SchedulerCounters
from alnair.serving.exposition import counter, gauge, histogram, of_this_process


def metrics(
    counters: SchedulerCounters, state: SchedulerFigures | None, lease: str = names.SCHEDULER
) -> Iterator[Metric]:
    """Return all families; `state` is None while this process does not lead."""
    yield from _counted(counters)
    yield from of_this_process()
    yield gauge(
        "leader_election_master_status",
        "Whether this process leads (1) or stands by (0).",
        [({"name": lease}, float(state is not None))],
    )
    if state is not None:
        yield from _present(state)
        yield from _gpus(state.gpus)


def of_configuration(results: Mapping[str, int], problem: str, since: float) -> Iterator[Metric]:
    """Return how the configuration in force stands to its file.

    Args:
        results: How often each was the result of a changed file.
        problem: Why the file is not in force as it is; empty: it is.
        since: When what is in force was loaded, in seconds since the epoch.
    """
    yield gauge(
        "alnair_configuration_in_force",
        "Whether the configuration file is in force as it is (1), or was refused or needs a"
        " restart (0).",
        [({}, float(not problem))],
    )
    yield gauge(
        "alnair_configuration_loaded_timestamp_seconds",
        "When the configuration in force was loaded.",
        [({}, since)],
    )
    yield counter(
        "alnair_configuration_reloads_total",
        "Changes of the configuration file by result: applied, refused, restart_needed.",
        [({"result": r}, results.get(r, 0)) for r in ("applied", "refused", "restart_needed")],
    )


def _counted(counters: SchedulerCounters) -> Iterator[Metric]:
    attempts = sorted(counters.attempts.items())
    yield counter(
        "scheduler_schedule_attempts_total",
        "Attempts to schedule pods by result: scheduled, unschedulable, or error (the Binding"
        " failed).",
        [({"result": r, "profile": p}, h.count) for (r, p), h in attempts],
    )
    yield histogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "Latency of an attempt: the decision and, if it led to one, the Binding.",
        [({"result": r, "profile": p}, h) for (r, p), h in attempts],
    )
    yield histogram(
        "scheduler_scheduling_algorithm_duration_seconds",
        "Latency of a decision alone.",
        [({}, counters.algorithm)],
    )
    yield histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "From entering the queue to being bound, over all attempts; not while gated.",
        [({"attempts": n}, h) for n, h in sorted(counters.sli.items())],
    )
    yield histogram(
        "scheduler_pod_scheduling_attempts",
        "Attempts that a pod needed to be scheduled.",
        [({}, counters.tries)],
    )
    yield histogram(
        "scheduler_framework_extension_point_duration_seconds",
        "Latency of an extension point; PreBind and Bind are timed, the others take microseconds.",
        [
            ({"extension_point": point, "status": status, "profile": profile}, h)
            for (point, status, profile), h in sorted(counters.extension_points.items())
        ],
    )
    yield counter(
        "scheduler_queue_incoming_pods_total",
        "Pods that entered a queue, by queue and event.",
        [({"queue": q, "event": e}, n) for (q, e), n in sorted(counters.incoming.items())],
    )
    yield counter(
        "alnair_evictions_total",
        "Pods that were evicted, by reason.",
        [({"reason": reason}, n) for reason, n in sorted(counters.evictions.items())],
    )
    yield counter(
        "scheduler_preemption_attempts_total",
        "Attempts to make room by preemption.",
        [({}, counters.preemption_attempts)],
    )
    yield histogram(
        "scheduler_preemption_victims",
        "Pods that a preemption took.",
        [({}, counters.preemption_victims)],
    )


def _present(state: SchedulerFigures) -> Iterator[Metric]:
    yield gauge(
        "scheduler_pending_pods",
        "Pending pods by queue: active, backoff, unschedulable (tried, and fits nowhere), gated.",
        [({"queue": queue}, n) for queue, n in state.pending.items()],
    )
    yield gauge(
        "scheduler_unschedulable_pods",
        "Unschedulable pods by plugin that refuses them or nodes for them; a pod counts for each.",
        [
            ({"plugin": plugin, "profile": profile}, n)
            for (plugin, profile), n in sorted(state.unschedulable.items())
        ],
    )
    yield gauge(
        "scheduler_scheduler_cache_size",
        "Nodes, pods, and assumed pods (placed, and not yet seen bound) that are known.",
        [
            ({"type": "nodes"}, state.nodes),
            ({"type": "pods"}, state.pods),
            ({"type": "assumed_pods"}, state.assumed),
        ],
    )
    yield gauge("alnair_bindings_in_flight", "Bindings under way.", [({}, state.in_flight)])
    yield gauge(
        "alnair_gangs",
        "Gangs with pods: waiting, planning (placed, the plan is being written), running.",
        [({"state": name}, n) for name, n in state.gangs.items()],
    )
    yield gauge(
        "alnair_pod_classes", "Pod classes whose evaluation is kept.", [({}, state.classes)]
    )


def _gpus(gpus: GpuCensus) -> Iterator[Metric]:
    yield gauge(
        "alnair_gpus",
        "GPUs by state: free, shared by slices, held whole, unhealthy (takes nothing new).",
        [
            ({"state": "free"}, gpus.free),
            ({"state": "shared"}, gpus.shared),
            ({"state": "whole"}, gpus.whole),
            ({"state": "unhealthy"}, gpus.unhealthy),
        ],
    )
    yield gauge("alnair_gpu_memory_bytes", "Memory of all GPUs.", [({}, gpus.memory)])
    yield gauge(
        "alnair_gpu_memory_free_bytes",
        "GPU memory that is promised to nobody.",
        [({}, gpus.memory_free)],
    )
    yield gauge(
        "alnair_gpu_compute_free_gpus",
        "Compute that is promised to nobody, in GPUs.",
        [({}, gpus.compute_free)],
    )
    yield gauge(
        "alnair_gpu_fragmentation_ratio",
        "Part of the free GPU memory that lies on shared GPUs, of no use to whole-GPU pods.",
        [({}, gpus.fragmentation)],
    )
    yield gauge(
        "alnair_gpu_nodes",
        "Nodes with GPUs, by the number of their GPUs that are free.",
        [({"free_gpus": str(free)}, n) for free, n in sorted(gpus.nodes_by_free.items())],
    )
