"""A table of pairs as a heat map: SVG or PNG, the same bytes for the same figures."""

import io
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from alnair.history.report.drawing import INK, styled
from alnair.model.pair_rates import PairRates

#: Inches of a cell, and left of and below the cells for the names.
_CELL: Final = 0.62
_NAMES: Final = 1.7
#: From dark to light for grey printers and the colour-blind alike.
_COLOURS: Final = "cividis"
#: Letters of a name that there is room for.
_LONGEST: Final = 24


def heat_map(table: PairRates, title: str, kind: str) -> bytes:
    """Return the picture: each row's speed beside each column, as a part of its speed alone.

    Args:
        table: Of one GPU model.
        title: Of the picture.
        kind: `svg` or `png`.
    """
    rates = np.array(table.rates, float).reshape(len(table.kinds), len(table.kinds))
    with styled(), mpl.rc_context({"axes.grid": False}):
        return _drawn(table.kinds, rates, title, kind)


def _drawn(kinds: tuple[str, ...], rates: Any, title: str, kind: str) -> bytes:
    size = _NAMES + _CELL * max(len(kinds), 3) + 0.4
    figure = Figure(figsize=(size, size))
    axes = figure.subplots()
    figure.subplots_adjust(
        left=_NAMES / size, bottom=_NAMES / size, right=1 - 0.2 / size, top=1 - 0.4 / size
    )
    axes.imshow(np.where(rates > 0, rates, np.nan), cmap=_COLOURS, vmin=0, vmax=1, aspect="auto")
    for row, line in enumerate(rates):
        for column, rate in enumerate(line):
            colour = "#000000" if rate > 0.55 else "#ffffff"
            if not rate:
                colour = INK
            text = f"{rate:.2f}" if rate else "-"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    names = [name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…" for name in kinds]
    places = range(len(kinds))
    axes.set_xticks(places, names, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(places, names, fontsize=8)
    axes.set_xlabel("beside")
    axes.set_ylabel("speed of")
    axes.tick_params(length=0)
    figure.text(0.1 / size, 1 - 0.1 / size, title, fontsize=10, va="top")
    data = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(data, format=kind, dpi=120, metadata=metadata)
    return data.getvalue()
