"""How fast two workloads run beside one another, for people to read."""

from rich.console import Console
from rich.table import Table

from alnair.profiler.pair_speeds import PairSpeeds

#: Together they do so much more than by taking turns that it is worth it.
_WORTH = 1.1


def show(found: PairSpeeds, kinds: tuple[str, str], console: Console) -> None:
    """Print the rates alone and together, and what sharing brings."""
    table = Table("workload", box=None, header_style="")
    for column in ("alone, steps/s", "together, steps/s", "speed"):
        table.add_column(column, justify="right")
    for kind, side in zip(kinds, (found.first, found.second), strict=True):
        speed = f"{side.speed:.3f} ± {side.spread:.3f}"
        table.add_row(kind, f"{side.alone:.4g}", f"{side.together:.4g}", speed)
    console.print(table)
    said = "more" if found.combined >= _WORTH else "not more"
    console.print(
        f"together they do {found.combined:.2f} of one GPU's work: {said} than by taking turns"
        f" (1.00); median of {found.rounds} rounds"
    )
