"""The plots of a report on efficiency: who held GPUs for what, and when they were wasted."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from alnair.history.database.efficiency import DayShare, Share
from alnair.history.report.drawing import COLOURS, LONGEST_NAME, cycle, plot, short, styled
from alnair.history.report.plot import Plot

#: Names that a plot has room for.
_BARS: Final = 20
#: Names that can be told apart by colour; the others are drawn as one.
_COLOURED: Final = len(COLOURS) - 1
_REST: Final = "#999999"


def plots(by: str, shares: Sequence[Share], days: Sequence[DayShare]) -> list[Plot]:
    """Return the plots.

    Args:
        by: What the names are of, for titles.
        shares: Who wasted most comes first.
        days: Of the jobs that ended on each day.
    """
    with styled():
        return [
            plot("hours", f"GPU hours that were held, by {by}", lambda axes: _hours(axes, shares)),
            plot(
                "wasted",
                f"Wasted GPU hours of the jobs that ended on a day, by {by}",
                lambda axes: _wasted(axes, days),
            ),
        ]


def _hours(axes: Axes, shares: Sequence[Share]) -> None:
    shown = shares[:_BARS]
    places = np.arange(len(shown))
    begin = np.zeros(len(shown))
    parts = {
        "used": [one.used for one in shown],
        "wasted": [one.wasted for one in shown],
        "not measured": [max(one.held - one.measured, 0.0) for one in shown],
    }
    colours = (COLOURS[0], COLOURS[1], _REST)
    for (label, hours), colour in zip(parts.items(), colours, strict=True):
        axes.barh(places, hours, 0.7, left=begin, color=colour, label=label)
        begin = begin + np.array(hours)
    axes.set_yticks(places, [short(one.name, LONGEST_NAME) for one in shown])
    axes.invert_yaxis()
    rest = len(shares) - len(shown)
    axes.set_xlabel("GPU hours" + (f"; {rest} that wasted less are left out" if rest else ""))


def _wasted(axes: Axes, days: Sequence[DayShare]) -> None:
    if not days:
        axes.set_xlabel("no job has ended yet")
        return
    # All days between the first and the last, also those on which nothing ended.
    first, last = days[0].day, days[-1].day
    times = np.arange(first, last + 1)
    wasted: dict[str, float] = {}
    for one in days:
        wasted[one.name] = wasted.get(one.name, 0.0) + one.wasted
    named = sorted(wasted, key=lambda name: (-wasted[name], name))[:_COLOURED]
    hours = {name: np.zeros(len(times)) for name in (*named, "")}
    for one in days:
        hours[one.name if one.name in named else ""][one.day - first] += one.wasted
    below = np.zeros(len(times))
    for name, colour in zip(hours, (*cycle(len(named)), _REST), strict=True):
        if hours[name].any():
            label = name or "all others"
            axes.bar(times, hours[name], 0.9, bottom=below, color=colour, label=label)
        below = below + hours[name]
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda day, _: f"{_date(day):%d %b}"))
    axes.set_xlim(first - 0.6, last + 0.6)
    axes.set_xlabel(f"day, UTC: {_date(first)} to {_date(last)}")
    axes.set_ylabel("GPU hours")


def _date(day: float) -> date:
    return datetime.fromtimestamp(day * 86400.0, UTC).date()
