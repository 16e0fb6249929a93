"""A table of pairs and what follows from it, for people to read."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from alnair.model.pair_rates import PairRates
from alnair.model.plurals import counted
from alnair.profiler.packing import Packing

_ADVICE = {
    "share": "share a GPU",
    "either": "about as by taking turns",
    "never": "never share a GPU",
    "unsure": "not sure, for rounds differ too much (measure longer, or where less else runs)",
    "unfit": "do not run together",
}


def show(name: str, table: PairRates, found: Packing, console: Console) -> None:
    """Print each row's speed beside each column, and whom to put together."""
    what = "speed of the row beside the column, as a part of its speed alone"
    console.print(f"{name}: {what}", soft_wrap=True)
    shown = Table("", box=None, header_style="")
    for kind in table.kinds:
        shown.add_column(kind, justify="right")
    shown.add_column("mean", justify="right")
    shown.add_column("alone, steps/s", justify="right")
    alone = table.alone or (0.0,) * len(table.kinds)
    for kind, row, rate in zip(table.kinds, table.rates, alone, strict=True):
        cells = [f"{speed:.2f}" if speed else "-" for speed in row]
        shown.add_row(kind, *cells, _mean(row), f"{rate:.4g}" if rate else "-")
    # How sensitive a kind is, and how much others suffer from it.
    shown.add_row("mean beside it", *map(_mean, zip(*table.rates, strict=True)), "", "")
    console.print(shown)
    if table.spread:
        widest = max((s for row in table.spread for s in row), default=0.0)
        if widest:  # with one round nothing is known of it
            console.print(f"half of the range over the rounds: {widest:.3f} at most")
    _packing(found, console)


def _mean(speeds: Sequence[float]) -> str:
    known = [speed for speed in speeds if speed]
    return f"{sum(known) / len(known):.2f}" if known else "-"


def _packing(found: Packing, console: Console) -> None:
    for advice, words in _ADVICE.items():
        pairs = [one for one in found.pairings if one.advice == advice]
        if not pairs:
            continue
        console.print(f"{words}:")
        for one in pairs:
            figures = " (they do not fit)"
            if one.combined:
                sides = f"{one.speeds[0]:.2f} + {one.speeds[1]:.2f}"
                figures = f": {one.combined:.2f} ± {one.spread:.2f} ({sides})"
            console.print(f"  {one.kinds[0]} and {one.kinds[1]}{figures}", soft_wrap=True)
    groups = ", ".join(" + ".join(group) for group in found.best)
    console.print(
        f"one of each on {counted(len(found.best), 'GPU')}: {groups}; {found.per_gpu:.2f} "
        f"of one job's speed"
        " alone per GPU",
        soft_wrap=True,
    )
