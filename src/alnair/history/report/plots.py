"""The plots of a report, by matplotlib: SVG and PNG, the same bytes for the same figures."""

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from alnair.history.history import History
from alnair.history.metrics import Metrics
from alnair.history.metrics.fragmentation import CAUSES
from alnair.history.metrics.times import job_times
from alnair.history.report.plot import Plot

#: Told apart by the colour-blind too, on light and dark ground. Source: Okabe, Ito, *Color
#: Universal Design*, 2008; without black and yellow.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
#: Of text and axes; the page puts the reader's own colour in its place.
_INK: Final = "#333333"
#: The ground of a plot that stands alone: white, and no colour that anything else has.
_GROUND: Final = "#fffffe"
#: Users that a plot has room for.
_USERS: Final = 25
#: Inches: of a plot, of what is left of its axes and right of them, and of a line of a legend.
_WIDTH: Final = 7.0
_LEFT: Final = 1.25
_RIGHT: Final = 0.2
_LEGEND_ROW: Final = 0.17
#: Characters that a legend and the space left of the axes have room for.
_LONGEST_LABEL: Final = 70
_LONGEST_NAME: Final = 17
_STYLE: Final[Any] = {
    "svg.hashsalt": "alnair",
    "svg.fonttype": "none",
    "figure.facecolor": _GROUND,
    "axes.facecolor": "none",
    "font.size": 9,
    "text.parse_math": False,  # a name may have a dollar sign
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#888888",
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}


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
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters in names that the font does not have
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        return [_plot(name, title, draw) for name, title, draw in drawn]


def _plot(name: str, title: str, draw: Callable[[Axes], None]) -> Plot:
    figure = Figure(figsize=(_WIDTH, 3.0))
    axes = figure.subplots()
    draw(axes)
    handles, labels = axes.get_legend_handles_labels()
    labels = [_short(label, _LONGEST_LABEL) for label in labels]
    columns = _legend_columns(labels)
    rows = -(-len(labels) // columns)
    # All plots have their axes at the same place, one below the other: equal times are in line.
    height = 2.85 + _LEGEND_ROW * rows
    figure.set_size_inches(_WIDTH, height)
    figure.subplots_adjust(
        left=_LEFT / _WIDTH,
        right=1 - _RIGHT / _WIDTH,
        bottom=0.5 / height,
        top=1 - (0.35 + _LEGEND_ROW * rows) / height,
    )
    figure.text(_LEFT / _WIDTH, 1 - 0.05 / height, title, fontsize=10, va="top")
    if labels:
        place = (_LEFT / _WIDTH, 1 - 0.26 / height)
        figure.legend(
            handles,
            labels,
            fontsize=8,
            ncols=columns,
            loc="upper left",
            bbox_to_anchor=place,
            borderaxespad=0,
            borderpad=0,
            labelspacing=0.3,
        )

    def saved(kind: str, metadata: dict[str, None]) -> bytes:
        data = io.BytesIO()
        figure.savefig(data, format=kind, dpi=120, metadata=metadata)
        return data.getvalue()

    svg = saved("svg", {"Date": None})
    return Plot(name, title, {"svg": svg, "png": saved("png", {"Software": None})}, _inline(svg))


def _legend_columns(labels: Sequence[str]) -> int:
    """Return how many entries of a legend are beside each other."""
    widest = 0.45 + 0.065 * max(map(len, labels), default=0)
    return max(1, min(len(labels), int((_WIDTH - _LEFT - _RIGHT) / widest)))


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _inline(svg: bytes) -> str:
    """Return an SVG file as a part of a page: on its ground, in its colour of text.

    In a page, all plots share one space of ids; those of groups are of no use to anybody.
    """
    text = svg.decode()
    text = text[text.index("<svg") :].replace(_GROUND, "none").replace(_INK, "currentColor")
    return re.sub(r'<g id="[^"]*"', "<g", text)


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
    for (run, metrics), colour in zip(runs.items(), _cycle(len(runs)), strict=True):
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


def _cycle(count: int) -> list[str]:
    return [_COLOURS[number % len(_COLOURS)] for number in range(count)]


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


def _bars(
    axes: Axes, names: Sequence[str], values: Mapping[str, Sequence[float]], unit: str
) -> None:
    """Draw a group of bars per name, with one bar per run."""
    height = 0.8 / len(values)
    places = np.arange(len(names))
    for number, ((run, row), colour) in enumerate(
        zip(values.items(), _cycle(len(values)), strict=True)
    ):
        label = run if len(values) > 1 else ""
        axes.barh(places + number * height, row, height * 0.9, color=colour, label=label)
    shown = [_short(name, _LONGEST_NAME) for name in names]
    axes.set_yticks(places + (len(values) - 1) * height / 2, shown)
    axes.invert_yaxis()
    axes.set_xlabel(unit)


def _stranded(axes: Axes, runs: Mapping[str, Metrics]) -> None:
    values = {
        run: [*m.fragmentation.stranded_gpus.values(), m.fragmentation.lost_gpus]
        for run, m in runs.items()
    }
    _bars(axes, [*CAUSES, "node-lost"], values, "GPUs")


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
    _bars(axes, names, values, f"T shared / T isolated, the {len(names)} users with most GPU hours")
    axes.axvline(1.0, color=_INK, linewidth=0.8, linestyle="--")


def _wait(axes: Axes, histories: Mapping[str, History]) -> None:
    for (run, history), colour in zip(histories.items(), _cycle(len(histories)), strict=True):
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
