"""The CSV files of a report; a column `run` tells the runs apart."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from alnair.history.history import History
from alnair.history.metrics import Metrics
from alnair.history.metrics.columns import asked
from alnair.history.metrics.times import job_times, pod_until

_Cells = Iterable[object]
JOBS = (
    *("run", "job", "user", "kind", "gpus", "gang", "fate", "submitted", "started", "finished"),
    *("until", "wait", "completion", "duration", "pods"),
)
PODS = (
    *("run", "pod", "job", "priority", "cpu_milli", "memory_mib", "gpus", "models", "fate"),
    *("submitted", "node", "begin", "end", "how", "lost", "refused"),
)
USERS = (
    *("run", "user", "jobs", "gpu_hours", "wanted_gpu_hours", "share", "wait_mean", "rho"),
    *("rho_at_least", "unfinished"),
)
PAIRS = ("run", "first", "second", "seconds", "first_rate", "second_rate", "throughput")


def table(header: Iterable[str], rows: Iterable[_Cells]) -> bytes:
    """Return a CSV file; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def jobs(histories: Mapping[str, History]) -> Iterator[_Cells]:
    """One row per job; times in seconds from the begin, wait and completion empty if open."""
    for run, history in histories.items():
        for job in history.jobs.values():
            times = job_times(job, history)
            yield (
                *(run, job.name, job.user, job.kind, job.gpus, int(job.gang), times.fate),
                *(job.submitted, times.started, job.finished, times.until),
                None if times.started is None else times.started - job.submitted,
                None if job.finished is None else job.finished - job.submitted,
                *(job.duration, len(job.pods)),
            )


def pods(histories: Mapping[str, History]) -> Iterator[_Cells]:
    """One row per stay of a pod on a node, and one per pod that never had one."""
    for run, history in histories.items():
        for pod in history.pods.values():
            head = (
                *(run, pod.uid, pod.job, pod.priority, pod.cpu_milli, pod.memory_mib),
                *(asked(pod), "|".join(pod.models), pod_until(pod, history)[1], pod.submitted),
            )
            for stay in pod.stays:
                yield *head, stay.node, stay.begin, stay.end, stay.how, stay.lost, ""
            if not pod.stays:
                yield *head, None, None, pod.gone, None, None, pod.refused


def users(runs: Mapping[str, Metrics]) -> Iterator[_Cells]:
    """One row per user."""
    for run, metrics in runs.items():
        for name, user in metrics.fairness.users.items():
            yield run, name, *msgspec.structs.astuple(user)


def pairs(runs: Mapping[str, Metrics]) -> Iterator[_Cells]:
    """One row per two kinds of jobs that shared GPUs."""
    for run, metrics in runs.items():
        for pair in metrics.sharing.pairs:
            yield run, *msgspec.structs.astuple(pair)


def series(runs: Mapping[str, Metrics]) -> bytes:
    """One row per span of time."""
    names = list(next(iter(runs.values())).series.values)
    rows = (
        (run, begin, end, *values)
        for run, metrics in runs.items()
        for begin, end, *values in zip(
            metrics.series.edges,
            metrics.series.edges[1:],
            *(metrics.series.values[name] for name in names),
            strict=False,
        )
    )
    return table(("run", "begin", "end", *names), rows)


def summary(runs: Mapping[str, Metrics]) -> bytes:
    """One row per figure, one column per run."""
    flat = {run: dict(figures(metrics)) for run, metrics in runs.items()}
    names: dict[str, None] = {}
    for found in flat.values():
        names.update(dict.fromkeys(found))
    rows = ((name, *(found.get(name) for found in flat.values())) for name in names)
    return table(("metric", *runs), rows)


def brief(metrics: Metrics) -> dict[str, Any]:
    """Return the metrics as plain values, without the series."""
    found: dict[str, Any] = msgspec.to_builtins(metrics)
    del found["series"]
    return found


def figures(metrics: Metrics) -> Iterator[tuple[str, float | int | bool | None]]:
    """Yield every number of the metrics under its path, such as `wait.all.over.p50`.

    Users, pairs and series have files of their own.
    """
    found = brief(metrics)
    del found["fairness"]["users"], found["sharing"]["pairs"], found["source"], found["refusals"]
    yield from _flat("", found)


def _flat(path: str, value: Any) -> Iterator[tuple[str, float | int | bool | None]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}" if path else name, inner)
    else:
        yield path, value
