"""The plots of a report on a placement benchmark: what is left over while pods arrive."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from alnair.history.report.drawing import COLOURS, plot, styled
from alnair.history.report.plot import Plot
from alnair.sim.placement.benchmark import Level


def plots(levels: Sequence[Level]) -> list[Plot]:
    """Return the plots, of levels by percent arrived."""
    with styled():
        return [
            plot(
                "course",
                "GPU that nobody has, and what of it is of little use (F)",
                lambda axes: _course(axes, levels),
            ),
            plot("failed", "Pods without a node so far", lambda axes: _failed(axes, levels)),
        ]


def _course(axes: Axes, levels: Sequence[Level]) -> None:
    arrived = [one.arrived_pct for one in levels]
    axes.plot(arrived, [one.unallocated_pct for one in levels], color=COLOURS[0], label="nobody's")
    axes.plot(arrived, [one.frag_pct for one in levels], color=COLOURS[1], label="F")
    axes.set_xlabel("GPU asked for so far, % of capacity")
    axes.set_ylabel("% of capacity")
    axes.set_ylim(bottom=0)


def _failed(axes: Axes, levels: Sequence[Level]) -> None:
    axes.plot([one.arrived_pct for one in levels], [one.failed for one in levels], color=COLOURS[1])
    axes.set_xlabel("GPU asked for so far, % of capacity")
    axes.set_ylabel("pods")
    axes.set_ylim(bottom=0)
