"""The plots of a report on scheduling."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from alnair.history.history import History
from alnair.history.metrics import Metrics
from alnair.history.metrics.fragmentation import CAUSES
from alnair.history.metrics.times import job_times
from alnair.history.report.drawing import INK, bars, cycle, plot, styled
from alnair.history.report.plot import Plot

#: Users that a plot has room for.
_USERS: Final = 25


def plots(histories: Mapping[str, History], runs: Mapping[str, Metrics]) -> list[Plot]:
    """Return the plots of some runs."""
    drawn: list[tuple[str, str, Callable[[Axes], None]]] = [
        ("gpu", "GPUs: capacity, allocated, used", lambda axes: _gpus(axes, runs)),
        ("fragmentation", "Fragmentation F", lambda axes: _fragmentation(axes, runs)),
        ("queue", "Pods waiting", lambda axes: _queue(axes, runs)),
        ("stranded", "Stranded GPUs by cause, mean", lambda axes: _stranded(axes, runs)),
        ("wait", "Jobs that had started after a wait", lambda axes: _wait(axes, histories)),
        ("fairness", "Finish-time fairness rho", lambda axes: _fairness(axes, runs)),
    ]
    with styled():
        return [plot(name, title, draw) for name, title, draw in drawn]


def _unit(runs: Mapping[str, Metrics]) -> tuple[float, str]:
    """Return the unit of time that suits the longest run."""
    longest = max((metrics.seconds for metrics in runs.values()), default=0.0)
    for most, length, name in ((600, 1, "seconds"), (7200, 60, "minutes"), (172800, 3600, "hours")):
        if longest <= most:
            return float(length), name
    return 86400.0, "days"


def _lines(
    axes: Axes, runs: Mapping[str, Metrics], parts: Sequence[tuple[str, str, str]], scale: str
) -> None:
    """Draw series over time: name, label and style of each; of `scale`, percent of capacity."""
    unit, word = _unit(runs)
    for (run, metrics), colour in zip(runs.items(), cycle(len(runs)), strict=True):
        edges = np.array(metrics.series.edges) / unit
        for name, label, style in parts:
            values = np.array(metrics.series.values[name])
            if scale:
                capacity = np.array(metrics.series.values[scale])
                values = 100 * np.divide(
                    values, capacity, out=np.zeros_like(values), where=capacity > 0
                )
            text = " ".join(filter(None, (run if len(runs) > 1 else "", label)))
            axes.stairs(values, edges, baseline=None, label=text, color=colour, linestyle=style)
    axes.set_xlabel(f"{word} from the begin")
    longest = max((metrics.seconds for metrics in runs.values()), default=0.0)
    axes.set_xlim(0, longest / unit or 1.0)
    axes.set_ylim(bottom=0)


def _gpus(axes: Axes, runs: Mapping[str, Metrics]) -> None:
    parts = [("allocated", "allocated", "-"), ("used", "used", ":")]
    if len(runs) == 1:
        parts.insert(0, ("capacity", "capacity", "--"))
    _lines(axes, runs, parts, "")
    axes.set_ylabel("GPUs")


def _fragmentation(axes: Axes, runs: Mapping[str, Metrics]) -> None:
    _lines(axes, runs, [("f", "F" if len(runs) == 1 else "", "-")], "capacity")
    axes.set_ylabel("percent of capacity")


def _queue(axes: Axes, runs: Mapping[str, Metrics]) -> None:
    _lines(axes, runs, [("waiting_pods", "pods" if len(runs) == 1 else "", "-")], "")
    axes.set_ylabel("pods")


def _stranded(axes: Axes, runs: Mapping[str, Metrics]) -> None:
    values = {
        run: [*m.fragmentation.stranded_gpus.values(), m.fragmentation.lost_gpus]
        for run, m in runs.items()
    }
    bars(axes, [*CAUSES, "node-lost"], values, "GPUs")


def _fairness(axes: Axes, runs: Mapping[str, Metrics]) -> None:
    hours: dict[str, float] = {}
    for metrics in runs.values():
        for name, user in metrics.fairness.users.items():
            hours[name] = hours.get(name, 0.0) + user.gpu_hours
    names = sorted(hours, key=lambda name: (-hours[name], name))[:_USERS]
    values = {
        run: [
            m.fairness.users[name].rho or 0.0 if name in m.fairness.users else 0.0 for name in names
        ]
        for run, m in runs.items()
    }
    bars(axes, names, values, f"T shared / T isolated, the {len(names)} users with most GPU hours")
    axes.axvline(1.0, color=INK, linewidth=0.8, linestyle="--")


def _wait(axes: Axes, histories: Mapping[str, History]) -> None:
    for (run, history), colour in zip(histories.items(), cycle(len(histories)), strict=True):
        waits = sorted(
            started - job.submitted
            for job in history.jobs.values()
            if (started := job_times(job, history).started) is not None
        )
        # Of many, these show the whole curve: every hundredth part, and the ends closer.
        parts = np.unique(np.concatenate((np.linspace(0, 1, 201), 1 - np.logspace(-2, -5, 60))))
        if waits:
            at = np.quantile(waits, parts)
            label = run if len(histories) > 1 else ""
            # Of all jobs: those that never started keep the curve below 100.
            percent = 100 * parts * len(waits) / len(history.jobs)
            axes.plot(np.maximum(at, 1.0), percent, color=colour, label=label)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("seconds at most (less than 1 is drawn as 1)")
    axes.set_ylabel("percent of all jobs")
