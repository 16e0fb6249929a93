"""All metrics of a history."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from alnair.history.history import History
from alnair.history.metrics.columns import Columns, asked, columns, counted
from alnair.history.metrics.fairness import fairness
from alnair.history.metrics.fragmentation import CAUSES, fgd, stranded, workload
from alnair.history.metrics.gangs import gangs
from alnair.history.metrics.losses import disruption
from alnair.history.metrics.result import (
    BySize,
    Counts,
    Decisions,
    Fragmentation,
    GpuUse,
    Metrics,
    Queue,
    Series,
)
from alnair.history.metrics.sharing import sharing
from alnair.history.metrics.sizes import Mask, by_size, sizes
from alnair.history.metrics.states import states
from alnair.history.metrics.steps import Floats, Steps, held, together
from alnair.history.metrics.times import JobEnd, JobTimes, job_times, pod_until
from alnair.history.metrics.waiting import waiting

#: Seconds below which a job's duration counts as this in its bounded slow-down. Source: Feitelson,
#: Rudolph, *Metrics and Benchmarking for Parallel Job Scheduling*, JSSPP'98, who take 10 s.
TAU: Final = 10.0
#: Spans of the series; a plot has about as many pixels.
SPANS: Final = 400
_HOUR = 3600.0
#: GPUs that sums of parts may miss zero by.
_NONE: Final = 1e-6


def compute(history: History, spans: int = SPANS) -> Metrics:
    """Return all metrics of a history.

    Args:
        history: of a simulation or of a live cluster.
        spans: how many spans of time its series have.

    Raises:
        ValueError: it contradicts itself: a stay on an unknown node, or with an unknown GPU.
    """
    table = columns(history)
    end = history.end
    times = {job.name: job_times(job, history) for job in history.jobs.values()}
    over_time = _over_time(history, table)
    fates = [pod_until(pod, history)[1] for pod in counted(history)]
    mean = {name: steps.mean(0.0, end) for name, steps in over_time.items()}
    finished = [job.finished for job in history.jobs.values() if job.finished is not None]
    is_open = len(finished) < len(history.jobs)
    first = min((job.submitted for job in history.jobs.values()), default=0.0)
    return Metrics(
        source=history.source,
        seconds=end,
        nodes=len(history.nodes),
        gpus=mean["capacity"],
        users=len({job.user for job in history.jobs.values()}),
        jobs=_counts(t.fate for t in times.values()),
        pods=_counts(fates),
        gpu=_use(over_time, table, end),
        fragmentation=_fragmentation(mean, table, history),
        queue=_queue(over_time, end),
        **_by_size(history, times),
        pod_wait=_pod_wait(history),
        makespan=(end if is_open else max(finished, default=0.0)) - first if history.jobs else 0.0,
        makespan_open=is_open,
        refusals=_refusals(history),
        fairness=fairness(history, times, _held_by_job(history, table), mean["capacity"]),
        disruption=disruption(history),
        gangs=gangs(history, times),
        sharing=sharing(history),
        decisions=Decisions(
            history.decisions,
            history.decision_seconds,
            history.decisions / history.decision_seconds if history.decision_seconds else None,
        ),
        series=_series(over_time, end, spans),
    )


def _over_time(history: History, table: Columns) -> dict[str, Steps]:
    """Return everything that changes over time, in GPUs or pods."""
    stays = table.stays
    ups = [
        (begin, history.end if until is None else until, gpus)
        for item, gpus in zip(history.nodes.values(), table.gpus, strict=True)
        for begin, until in item.up
    ]
    up = np.array(ups, dtype=np.float64).reshape(-1, 3)
    known = ~np.isnan(stays.working)
    pods, gpus = waiting(history)
    by_cause = stranded(states(history, table), workload(history))
    return {
        "capacity": held(up[:, 0], up[:, 1], up[:, 2]),
        "allocated": held(stays.begin, stays.end, stays.gpus),
        "used": held(stays.begin[known], stays.end[known], stays.working[known]),
        "f": fgd(by_cause),
        "waiting_pods": pods,
        "waiting_gpus": gpus,
        **{f"stranded_{cause}": steps for cause, steps in by_cause.items()},
    }


def _use(over_time: Mapping[str, Steps], table: Columns, end: float) -> GpuUse:
    total = {name: over_time[name].integral(0.0, end) for name in ("capacity", "allocated", "used")}
    stays = table.stays
    unknown = np.isnan(stays.working)
    spans = np.minimum(stays.end, end) - np.maximum(stays.begin, 0.0)
    unmeasured = float((stays.gpus * np.maximum(spans, 0.0))[unknown].sum())
    capacity, allocated = total["capacity"], total["allocated"]
    is_known = bool((~unknown & (stays.gpus > 0)).any())
    parts = (over_time["capacity"], over_time["allocated"], over_time["waiting_gpus"])
    # In the history only, whose begin and end are steps too.
    times, (there, held_then, waited_for) = together(*(p.within(0.0, end) for p in parts))
    spans = np.diff(times, append=end) * (waited_for > _NONE)
    contended = float(np.dot(there, spans))
    return GpuUse(
        capacity / _HOUR,
        allocated / _HOUR,
        total["used"] / _HOUR,
        unmeasured / _HOUR,
        100.0 * allocated / capacity if capacity else 0.0,
        100.0 * total["used"] / capacity if capacity and is_known else None,
        100.0 * float(np.dot(held_then, spans)) / contended if contended else None,
        100.0 * float((held_then[there > 0] / there[there > 0]).max(initial=0.0)),
    )


def _fragmentation(mean: Mapping[str, float], table: Columns, history: History) -> Fragmentation:
    by_cause = {cause: mean[f"stranded_{cause}"] for cause in CAUSES}
    free = mean["capacity"] - mean["allocated"]
    return Fragmentation(
        100.0 * mean["f"] / mean["capacity"] if mean["capacity"] else 0.0,
        free,
        free - sum(by_cause.values()),
        by_cause,
        float(table.gpus.sum()) - mean["capacity"],
    )


def _queue(over_time: Mapping[str, Steps], end: float) -> Queue:
    pods, gpus = over_time["waiting_pods"], over_time["waiting_gpus"]
    return Queue(
        pods.mean(0.0, end), round(pods.peak(0.0, end)), gpus.mean(0.0, end), gpus.peak(0.0, end)
    )


def _by_size(history: History, times: Mapping[str, JobTimes]) -> dict[str, BySize]:
    """Return the distributions over jobs."""
    jobs = list(history.jobs.values())
    rows = [
        (
            job.gpus,
            job.submitted,
            np.nan if (t := times[job.name]).started is None else t.started,
            np.nan if job.finished is None else job.finished,
            t.until,
            np.nan if job.duration is None else job.duration,
        )
        for job in jobs
    ]
    gpus, submitted, started, finished, until, duration = (
        np.array(rows, dtype=np.float64).reshape(-1, 6).T
    )
    waits, unstarted = _so_far(started, until, submitted)
    completions, unfinished = _so_far(finished, until, submitted)
    # Without a duration, or of nothing to do, there is no slow-down.
    known = duration > 0
    bounded = np.maximum(completions / np.maximum(duration, TAU), 1.0)
    of = sizes(gpus)
    return {
        "wait": by_size(of, waits, unstarted),
        "completion": by_size(of, completions, unfinished),
        "slowdown": by_size(of[known], completions[known] / duration[known], unfinished[known]),
        "bounded_slowdown": by_size(of[known], bounded[known], unfinished[known]),
    }


def _so_far(moment: Floats, until: Floats, submitted: Floats) -> tuple[Floats, Mask]:
    """Return the time from submission to a moment, or so far, and which have not come to it."""
    is_open = np.isnan(moment)
    return np.where(is_open, until, moment) - submitted, is_open


def _pod_wait(history: History) -> BySize:
    pods = counted(history)
    begins = np.array([pod.stays[0].begin if pod.stays else np.nan for pod in pods], np.float64)
    until = np.array([history.end if pod.gone is None else pod.gone for pod in pods], np.float64)
    submitted = np.array([pod.submitted for pod in pods], np.float64)
    gpus = np.array([asked(pod) for pod in pods], np.float64)
    return by_size(sizes(gpus), *_so_far(begins, until, submitted))


def _held_by_job(history: History, table: Columns) -> dict[str, float]:
    numbers = {name: number for number, name in enumerate(history.jobs)}
    of_pod = np.array([numbers.get(pod.job, -1) for pod in history.pods.values()], np.int64)
    stays = table.stays
    spans = np.minimum(stays.end, history.end) - np.maximum(stays.begin, 0.0)
    sums = np.zeros(len(numbers) + 1)  # the last one of pods without a job
    np.add.at(sums, of_pod[stays.pod], stays.gpus * np.maximum(spans, 0.0))
    return {name: float(sums[number]) for name, number in numbers.items()}


def _counts(fates: Iterable[JobEnd]) -> Counts:
    found = Counter(fates)
    return Counts(
        found.total(), found["finished"], found["left"], found["running"], found["waiting"]
    )


def _refusals(history: History) -> dict[str, int]:
    found = Counter(pod.refused for pod in counted(history) if pod.refused and not pod.stays)
    return dict(found.most_common())


def _series(over_time: Mapping[str, Steps], end: float, spans: int) -> Series:
    if end <= 0:
        return Series([0.0], {name: [] for name in over_time})
    edges = np.linspace(0.0, end, spans + 1)
    return Series(
        edges.tolist(), {name: steps.means(edges).tolist() for name, steps in over_time.items()}
    )
