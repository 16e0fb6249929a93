"""The figures that a person looks at first, as text: one row each, one column per run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from alnair.history.metrics import Metrics
from alnair.history.metrics.result import BySize, Censored

_Value = float | int | None


class Row(msgspec.Struct, frozen=True):
    """A figure of each run.

    Attributes:
        heading: of the part that it opens, or empty.
        values: one text per run.
        ratios: of each further run to the first; empty if there is none.
    """

    heading: str
    label: str
    values: tuple[str, ...]
    ratios: tuple[str, ...]


def number(value: _Value) -> str:
    """Return a number for people."""
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percent(value: _Value) -> str:
    """Return a percentage for people."""
    return "-" if value is None else f"{value:.2f} %"


def duration(seconds: _Value) -> str:
    """Return a time for people, in the unit that suits it."""
    if seconds is None:
        return "-"
    for most, unit, length in ((120, "s", 1), (7200, "min", 60), (172800, "h", 3600)):
        if abs(seconds) < most:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 86400:,.3g} d"


def at_least(text: str) -> str:
    """Mark a figure that can only grow."""
    return f"≥ {text}"


def summary(runs: Mapping[str, Metrics]) -> list[Row]:
    """Return the few figures that most questions are about."""
    found = {row.label: row for row in rows(runs)}
    return [msgspec.structs.replace(found[label], heading="") for label in _SUMMARY]


def rows(runs: Mapping[str, Metrics]) -> list[Row]:
    """Return the overview of some runs."""
    found = []
    for heading, lines in _PARTS.items():
        for position, (label, get, show) in enumerate(lines):
            values = [get(metrics) for metrics in runs.values()]
            texts = tuple(show(value) for value in values)
            if label == "makespan":
                marks = [metrics.makespan_open for metrics in runs.values()]
                texts = tuple(
                    at_least(text) if mark else text
                    for text, mark in zip(texts, marks, strict=True)
                )
            found.append(Row("" if position else heading, label, texts, _ratios(values)))
    return found


def by_size(runs: Mapping[str, Metrics], what: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the distributions of a metric as texts: size, run, and a column for each of `COLUMNS`.

    Args:
        runs: The runs.
        what: `wait`, `completion`, `slowdown`, `bounded_slowdown` or `pod_wait`.
    """
    show = number if "slowdown" in what else duration
    sizes: dict[str, None] = {}
    per_run: dict[str, BySize] = {name: getattr(m, what) for name, m in runs.items()}
    for found in per_run.values():
        sizes.update(dict.fromkeys(found))
    return [
        (size, name, _columns(found[size], show))
        for size in sizes
        for name, found in per_run.items()
        if size in found
    ]


#: Columns of a distribution.
COLUMNS: Final = ("over", "mean", "p50", "p90", "p99", "max", "open", "mean of all, at least")


def _columns(found: Censored, show: Callable[[_Value], str]) -> tuple[str, ...]:
    over = found.over
    figures = (over.mean, over.p50, over.p90, over.p99, over.max)
    last = show(found.at_least.mean)
    return (
        number(over.count),
        *map(show, figures),
        number(found.open),
        at_least(last) if found.open else last,
    )


def _ratios(values: Sequence[_Value]) -> tuple[str, ...]:
    first, *others = values
    return tuple(f"{other / first:.3f}" if first and other is not None else "-" for other in others)


def _stranded(cause: str) -> Callable[[Metrics], _Value]:
    return lambda m: m.fragmentation.stranded_gpus[cause]


def _lost(how: str) -> Callable[[Metrics], _Value]:
    return lambda m: m.disruption.ended[how]


def _wasted(how: str) -> Callable[[Metrics], _Value]:
    return lambda m: m.disruption.wasted_gpu_hours[how]


_SUMMARY: Final = (
    *("time covered", "GPUs, mean", "jobs", "jobs finished", "jobs that never started"),
    *("GPU allocated", "GPU allocated while pods waited", "fragmentation F"),
    *("wait of jobs, mean", "wait of jobs, p99", "completion time, mean", "makespan"),
    *("Jain index", "stays preempted", "stays lost with their node"),
)
_Line = tuple[str, Callable[[Metrics], _Value], Callable[[_Value], str]]
_PARTS: Final[dict[str, list[_Line]]] = {
    "Cluster and work": [
        ("time covered", lambda m: m.seconds, duration),
        ("nodes", lambda m: m.nodes, number),
        ("GPUs, mean", lambda m: m.gpus, number),
        ("users", lambda m: m.users, number),
        ("jobs", lambda m: m.jobs.total, number),
        ("jobs finished", lambda m: m.jobs.finished, number),
        ("jobs gone unfinished", lambda m: m.jobs.left, number),
        ("jobs running at the end", lambda m: m.jobs.running, number),
        ("jobs waiting at the end", lambda m: m.jobs.waiting, number),
        ("pods", lambda m: m.pods.total, number),
        ("pods waiting at the end", lambda m: m.pods.waiting, number),
    ],
    "GPUs": [
        ("GPU allocated", lambda m: m.gpu.allocated_pct, percent),
        ("GPU allocated while pods waited", lambda m: m.gpu.contended_pct, percent),
        ("GPU allocated, peak", lambda m: m.gpu.peak_pct, percent),
        ("GPU time used", lambda m: m.gpu.used_pct, percent),
        ("GPU hours allocated", lambda m: m.gpu.allocated_hours, number),
        ("GPU hours used", lambda m: m.gpu.used_hours, number),
        ("GPU hours allocated, not measured", lambda m: m.gpu.unmeasured_hours, number),
    ],
    "Free GPUs, means over time": [
        ("fragmentation F", lambda m: m.fragmentation.f_pct, percent),
        ("free", lambda m: m.fragmentation.free_gpus, number),
        ("of use to the workload", lambda m: m.fragmentation.usable_gpus, number),
        ("stranded: pods ask for no GPU", _stranded("no-gpu-asked"), number),
        ("stranded: other GPU models asked", _stranded("model"), number),
        ("stranded: lack of cores", _stranded("cpu"), number),
        ("stranded: lack of memory", _stranded("memory"), number),
        ("stranded: lack of several", _stranded("several"), number),
        ("stranded: pieces too small", _stranded("gpu-too-small"), number),
        ("stranded: too few GPUs on the node", _stranded("gpu-too-few"), number),
        ("on nodes that were lost", lambda m: m.fragmentation.lost_gpus, number),
    ],
    "Waiting": [
        ("pods waiting, mean", lambda m: m.queue.mean_pods, number),
        ("pods waiting, most", lambda m: m.queue.max_pods, number),
        ("GPUs waited for, mean", lambda m: m.queue.mean_gpus, number),
        ("wait of jobs, mean", lambda m: m.wait["all"].over.mean, duration),
        ("wait of jobs, p50", lambda m: m.wait["all"].over.p50, duration),
        ("wait of jobs, p99", lambda m: m.wait["all"].over.p99, duration),
        ("jobs that never started", lambda m: m.wait["all"].open, number),
        ("completion time, mean", lambda m: m.completion["all"].over.mean, duration),
        ("completion time, p99", lambda m: m.completion["all"].over.p99, duration),
        ("slow-down, mean", lambda m: m.slowdown["all"].over.mean, number),
        ("bounded slow-down, mean", lambda m: m.bounded_slowdown["all"].over.mean, number),
        ("makespan", lambda m: m.makespan, duration),
    ],
    "Fairness between users": [
        ("Jain index", lambda m: m.fairness.jain, number),
        ("worst finish-time fairness rho", lambda m: m.fairness.worst_rho, number),
    ],
    "Disruption": [
        ("stays preempted", _lost("preempted"), number),
        ("stays evicted", _lost("evicted"), number),
        ("stays lost with their node", _lost("lost"), number),
        ("stays failed", _lost("failed"), number),
        ("GPU hours wasted: preempted", _wasted("preempted"), number),
        ("GPU hours wasted: evicted", _wasted("evicted"), number),
        ("GPU hours wasted: node lost", _wasted("lost"), number),
        ("GPU hours wasted: failed", _wasted("failed"), number),
    ],
    "Gangs": [
        ("gangs", lambda m: m.gangs.total, number),
        ("that ran whole", lambda m: m.gangs.whole, number),
        ("only ever in part", lambda m: m.gangs.in_part, number),
        ("first to last pod, p99", lambda m: m.gangs.spread.p99, duration),
        ("GPU hours held in part", lambda m: m.gangs.partial_gpu_hours, number),
    ],
    "Sharing of GPUs": [
        ("hours of pairs on one GPU", lambda m: m.sharing.seconds / 3600, number),
        ("normalised throughput of a pair", lambda m: m.sharing.throughput_mean, number),
        ("speed of a co-located job, mean", lambda m: m.sharing.rate_mean, number),
        ("speed of a co-located job, least", lambda m: m.sharing.rate_min, number),
    ],
    "Decisions": [
        ("attempts at pods", lambda m: m.decisions.count, number),
        ("per second of the scheduler's time", lambda m: m.decisions.per_second, number),
    ],
}
