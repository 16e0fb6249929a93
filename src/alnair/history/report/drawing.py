"""How plots are drawn, by matplotlib: SVG and PNG, the same bytes for the same figures."""

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from alnair.history.report.plot import Plot

#: Told apart by the colour-blind too, on light and dark ground. Source: Okabe, Ito, *Color
#: Universal Design*, 2008; without black and yellow.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
#: Of text and axes; the page puts the reader's own colour in its place.
INK: Final = "#333333"
#: The ground of a plot that stands alone: white, and no colour that anything else has.
_GROUND: Final = "#fffffe"
#: Inches: of a plot, of what is left of its axes and right of them, and of a line of a legend.
_WIDTH: Final = 7.0
_LEFT: Final = 1.25
_RIGHT: Final = 0.2
_LEGEND_ROW: Final = 0.17
#: Characters that a legend and the space left of the axes have room for.
_LONGEST_LABEL: Final = 70
LONGEST_NAME: Final = 17
_STYLE: Final[Any] = {
    "svg.hashsalt": "alnair",
    "svg.fonttype": "none",
    "figure.facecolor": _GROUND,
    "axes.facecolor": "none",
    "font.size": 9,
    "text.parse_math": False,  # a name may have a dollar sign
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#888888",
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in our style, whatever the machine's is."""
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters in names that the font does not have
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def plot(name: str, title: str, draw: Callable[[Axes], None]) -> Plot:
    """Return a plot that `draw` draws; within `styled`."""
    figure = Figure(figsize=(_WIDTH, 3.0))
    axes = figure.subplots()
    draw(axes)
    handles, labels = axes.get_legend_handles_labels()
    labels = [short(label, _LONGEST_LABEL) for label in labels]
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


def short(text: str, most: int) -> str:
    """Return a text, cut off if it is longer than there is room for."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _inline(svg: bytes) -> str:
    """Return an SVG file as a part of a page: on its ground, in its colour of text.

    In a page, all plots share one space of ids; those of groups are of no use to anybody.
    """
    text = svg.decode()
    text = text[text.index("<svg") :].replace(_GROUND, "none").replace(INK, "currentColor")
    return re.sub(r'<g id="[^"]*"', "<g", text)


def cycle(count: int) -> list[str]:
    """Return so many colours."""
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def bars(
    axes: Axes, names: Sequence[str], values: Mapping[str, Sequence[float]], unit: str
) -> None:
    """Draw a group of bars per name, with one bar per run."""
    height = 0.8 / len(values)
    places = np.arange(len(names))
    for number, ((run, row), colour) in enumerate(
        zip(values.items(), cycle(len(values)), strict=True)
    ):
        label = run if len(values) > 1 else ""
        axes.barh(places + number * height, row, height * 0.9, color=colour, label=label)
    shown = [short(name, LONGEST_NAME) for name in names]
    axes.set_yticks(places + (len(values) - 1) * height / 2, shown)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
